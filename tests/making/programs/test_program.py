"""One command of a program as a tool: parameters become an argument list, and its output a result."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from engine.making.programs.commands import command_of_help
from engine.making.programs.tools import commands_file

PROGRAM = Path(__file__).parents[3] / "engine/making/programs/inside/program.py"
MODULE = """
import json, sys
def main():
    if sys.argv[1:2] == ["die"]:
        sys.exit("no")
    if sys.argv[1:2] == ["break"]:
        raise RuntimeError("broken")
    open("made.txt", "w").write("made")
    print(json.dumps({"argv": sys.argv, "stdin": sys.stdin.read()}))
"""
PARAMETERS: list[JsonValue] = [
    {"name": "mode", "kind": "option", "on": "--mode", "default": "soft"},
    {"name": "short", "kind": "option", "on": "-s"},
    {"name": "loud", "kind": "flag", "on": "--loud", "off": "--no-loud"},
    {"name": "verbose", "kind": "count", "on": "-v"},
    {"name": "tag", "kind": "option", "on": "--tag", "repeats": True},
    {"name": "names", "kind": "positional"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(PROGRAM, tmp_path / "program.py")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/prog.py").write_text(MODULE)
    (tmp_path / "out").mkdir()
    levels: list[JsonValue] = [{"words": [], "parameters": []}, {"words": ["sub"], "parameters": PARAMETERS}]
    commands = {"x": {"program": "prog", "target": "prog:main", "levels": levels}}
    for word in ("die", "break"):
        commands[word] = {"program": "prog", "target": "prog:main", "levels": [{"words": [word], "parameters": []}]}
    commands["file"] = {"program": "prog", "target": "bin/prog", "levels": [{"words": ["a"], "parameters": []}]}
    (tmp_path / "site/bin").mkdir()
    (tmp_path / "site/bin/prog").write_text("import beside\nif __name__ == '__main__':\n    beside.main()\n")
    (tmp_path / "site/bin/beside.py").write_text("from prog import main\n")
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    return tmp_path


def called(folder: Path, name: str = "x", **params: JsonValue) -> dict[str, JsonValue]:
    script = folder / f"{name}.py"
    script.write_text(f"from program import run\nrun({name!r})\n")
    environment = {"TOOL_AGENT_OUTPUT_DIR": str(folder / "out")}
    done = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(params).encode(), env=environment, capture_output=True, check=True, timeout=60
    )
    return cast("dict[str, JsonValue]", json.loads(done.stdout))


def test_a_program_may_be_a_file_that_imports_what_lies_beside_it(folder: Path) -> None:
    found = called(folder, "file", stdin="in")
    assert found["exit_code"] == 0
    assert '"stdin": "in"' in str(found["stdout"])


def test_what_a_call_says_becomes_an_argument_list(folder: Path) -> None:
    found = called(folder, mode="loud", short="-1", loud=False, verbose=2, tag=["a", "--b"], names=["x", "$(y)"], stdin="in")
    words = ["prog", "sub", "--mode=loud", "-s", "-1", "--no-loud", "-v", "-v", "--tag=a", "--tag=--b", "x", "$(y)"]
    assert found["output"] == {"argv": words, "stdin": "in"}
    assert (found["exit_code"], found["stderr"]) == (0, "")
    assert found["files"] == [{"name": "made.txt", "file": "made.txt"}]


def test_a_default_is_not_said_and_what_begins_with_a_dash_is_no_option(folder: Path) -> None:
    output = cast("dict[str, JsonValue]", called(folder, mode="soft", names=["-x"])["output"])
    assert output["argv"] == ["prog", "sub", "--", "-x"]


def test_options_of_a_program_that_is_known_by_its_help_alone_are_options(folder: Path) -> None:
    command = command_of_help("prog", 0, b"usage: prog [-1] [FILE ...]", b"")
    assert command is not None
    (folder / "commands.json").write_text(commands_file([command], {"prog": "prog:main"}))
    output = cast("dict[str, JsonValue]", called(folder, "run_prog", arguments=["-1", "--sep", ",", "a.csv"])["output"])
    assert output["argv"] == ["prog", "-1", "--sep", ",", "a.csv"]


def test_files_of_the_call_lie_where_it_works_and_are_not_what_it_made(folder: Path) -> None:
    (folder / "given.csv").write_text("1,2")
    found = called(folder, files=[str(folder / "given.csv")], names=["given.csv"])
    assert [file["name"] for file in cast("list[dict[str, str]]", found["files"])] == ["made.txt"]
    assert (folder / "out/given.csv").read_text() == "1,2"


def test_how_it_ended_is_a_result(folder: Path) -> None:
    died = called(folder, "die")
    assert (died["exit_code"], died["stderr"], died["stdout"]) == (1, "no\n", "")
    broke = called(folder, "break")
    assert broke["exit_code"] == 1
    assert "RuntimeError: broken" in str(broke["stderr"])
