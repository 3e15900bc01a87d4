"""The overview of all commands is shown without importing any: its lines are a table."""

import inspect
import subprocess
import sys

import pytest
import typer
from typer.core import TyperGroup

from toolagent.cli.app import COMMANDS, app

HEAVY = {"asyncio", "httpx", "jsonschema_rs", "pydantic", "pypinyin", "semantic_version", "temporalio"}
LOADED = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from toolagent.cli.__main__ import main
main()
"""


def ran(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", LOADED, *words], check=True, capture_output=True, text=True, env=env)


def test_every_line_is_the_beginning_of_what_the_command_says_of_itself() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    commands = {name: outline.make_context(name, ["--help"], resilient_parsing=True).command for name, outline in group.commands.items()}
    said = {name: inspect.cleandoc(command.help or "").partition("\n\n")[0] for name, command in commands.items()}
    assert {name: summary for name, (_, summary) in COMMANDS.items()} == said
    assert [name for name, command in commands.items() if command.hidden] == ["call"]


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_the_overview_imports_neither_a_command_nor_what_commands_stand_on(words: tuple[str, ...]) -> None:
    loaded = set(ran(*words).stderr.split())
    ours = {name for name in loaded if name.partition(".")[0] == "toolagent"}
    assert ours == {"toolagent", "toolagent.cli", "toolagent.cli.__main__", "toolagent.cli.app"}
    assert loaded & HEAVY == set()


def test_what_a_command_imports_would_be_seen() -> None:
    assert {"httpx", "pydantic", "toolagent.cli.calling"} <= set(ran("run", "--help").stderr.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [("toolagent act", ["activate"]), ("toolagent ca", []), ("toolagent file ", ["get"]), ("toolagent run --js", ["--json"])],
)
def test_the_shell_completes_commands_and_their_options(words: str, offered: list[str]) -> None:
    asked = {"_TOOLAGENT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-c", "from toolagent.cli.app import app; app(prog_name='toolagent')"]
    assert subprocess.run(command, check=True, capture_output=True, text=True, env=asked).stdout.split() == offered
