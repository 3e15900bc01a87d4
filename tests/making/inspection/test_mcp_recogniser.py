"""How MCP servers of repositories are recognised, and which commands may start them."""

import json
from pathlib import Path

import pytest

from tests.making.inspection.recognised import found, only
from toolagent.contracts.making import FindingKind


def test_an_mcp_server_of_node_is_given_what_its_readme_gives_to_it(tmp_path: Path) -> None:
    package = {"name": "@a/notes", "bin": {"notes": "cli.js"}, "dependencies": {"@modelcontextprotocol/sdk": "1"}}
    readme = '{"args": ["-y", "mcp-remote", "https://x"]} {"args": ["-y", "@a/notes@latest", "--stdio"]}'
    assert only(found(tmp_path, {"package.json": json.dumps(package), "README.md": readme}), FindingKind.MCP_SERVER).details[
        "arguments"
    ] == ["--stdio"]
    other = '{"args": ["/path/to/notes/dist/index.js", "--quiet"]}'
    assert only(found(tmp_path, {"README.md": other}), FindingKind.MCP_SERVER).details["arguments"] == ["--quiet"]


@pytest.mark.parametrize(("name", "is_server"), [("@x/git-mcp-server", True), ("@x/notes", False)])
def test_a_server_of_node_that_is_bundled_needs_the_sdk_for_building_alone(tmp_path: Path, name: str, *, is_server: bool) -> None:
    package = {"name": name, "bin": "dist/index.js", "devDependencies": {"@modelcontextprotocol/sdk": "1.20.2"}}
    kinds = [one.kind for one in found(tmp_path, {"package.json": json.dumps(package)})]
    assert (FindingKind.MCP_SERVER in kinds) is is_server


def test_the_server_that_a_manifest_tells_clients_to_start_goes_before_others(tmp_path: Path) -> None:
    server = "from mcp.server.fastmcp import FastMCP\nserver = FastMCP('x')\nif __name__ == '__main__':\n    server.run()\n"
    files = {
        "pyproject.toml": '[project]\nname = "x"\nversion = "1"\ndependencies = ["mcp"]\n',
        "bin/a_bridge.py": server,
        "bin/notes.py": server,
    }
    for manifest in ("mcp-server.json", "manifest.json"):
        files[manifest] = '{"server": {"command": "python", "args": ["./bin/notes.py"]}}'
        (one,) = [one for one in found(tmp_path / manifest, files) if one.kind is FindingKind.MCP_SERVER]
        assert one.details["module"] == "bin/notes.py"
        del files[manifest]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("StreamableHTTPSessionManager(app=server)", "alone"),
        ("SseServerTransport('/messages')\nif local: stdio_server()", "too"),
        ("server.run(transport='http')", None),
    ],
)
def test_a_server_that_speaks_http_is_known_by_its_code(tmp_path: Path, text: str, spoken: str | None) -> None:
    python = found(tmp_path / "python", {"requirements.txt": "mcp", "server.py": f"from mcp.server import Server\n{text}\n"})
    node = found(tmp_path / "node", {"package.json": '{"name": "x", "dependencies": {"@modelcontextprotocol/sdk": "1"}}', "src/s.ts": text})
    for findings in (python, node):
        [one] = [one for one in findings if one.kind is FindingKind.MCP_SERVER]
        assert one.details.get("http") == spoken
