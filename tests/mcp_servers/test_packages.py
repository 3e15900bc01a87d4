"""Which package a command names."""

import pytest

from engine.mcp_servers.packages import PackageCommand, package_command
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.sources import ScriptLanguage
from toolagent.core.mcp_specs import SpecFault

PYTHON, NODE = ScriptLanguage.PYTHON, ScriptLanguage.NODEJS


def spec(command: str) -> McpServerSpec:
    first, *args = command.split(" ")
    return McpServerSpec(command=first, args=tuple(args))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("uvx mcp-server-time", PackageCommand(PYTHON, (("mcp-server-time", "mcp-server-time"),), "mcp-server-time", ())),
        ("uvx a-b@1.2 --repository /x", PackageCommand(PYTHON, (("a-b", "a-b==1.2"),), "a-b", ("--repository", "/x"))),
        ("uvx a@latest", PackageCommand(PYTHON, (("a", "a"),), "a", ())),
        ("uvx --from a[x]==2 b -v", PackageCommand(PYTHON, (("a", "a[x]==2"),), "b", ("-v",))),
        ("uvx --with mcp<2 --python 3.12 a", PackageCommand(PYTHON, (("a", "a"), ("mcp", "mcp<2")), "a", (), "3.12")),
        ("uv tool run a", PackageCommand(PYTHON, (("a", "a"),), "a", ())),
        ("npx -y @a/b /x", PackageCommand(NODE, (("@a/b", "latest"),), None, ("/x",))),
        ("npx @a/b@^1.2", PackageCommand(NODE, (("@a/b", "^1.2"),), None, ())),
        ("npx --package=@a/b@2 c d", PackageCommand(NODE, (("@a/b", "2"),), "c", ("d",))),
    ],
)  # fmt: skip
def test_runners_name_a_package_its_program_and_arguments(command: str, expected: PackageCommand) -> None:
    assert package_command(spec(command)) == expected


def test_other_commands_are_programs_of_the_machine() -> None:
    assert package_command(spec("python3 -m server")) is None


@pytest.mark.parametrize(
    "command",
    [
        "uvx", "uvx --from", "uvx --index-url https://a.example a", "uvx git+https://a.example/b", "uvx a@https://a.example/b.whl",
        "uvx --python pypy a", "npx", "npx -y", "npx github:a/b", "npx ../a", "npx -y ..", "npx @a/.b", "npx --package=a", "npx -c echo",
        "docker run x", f"uvx a;{'(' * 3900}",
    ],
)  # fmt: skip
def test_what_comes_from_elsewhere_or_cannot_be_read_is_refused(command: str) -> None:
    with pytest.raises(SpecFault):
        package_command(spec(command))
