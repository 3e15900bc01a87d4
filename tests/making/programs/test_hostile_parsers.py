"""The description of a parser is untrusted: unusable parts are left out, with the reason."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making.openapi.tools import Described
from engine.making.programs.building import program_files
from engine.making.programs.commands import commands_of
from engine.making.programs.tools import fitting, program_candidate, script_names
from toolagent.contracts.sources import ScriptLanguage


def parser(*commands: JsonValue) -> JsonValue:
    return {"commands": [*commands]}


def named(name: str) -> JsonValue:
    return {"name": name}


def test_commands_that_are_called_alike_are_told_apart() -> None:
    commands, _ = commands_of("prog", parser(*(named(name) for name in ("a_2", "a", "A", "a-", "a_3", "a.2"))))
    assert script_names(commands) == ("run_a_2", "run_a", "run_a_3", "run_a_4", "run_a_3_2", "run_a_2_2")
    ids = [entry.manifest.tool_id for entry in program_candidate(commands, Described("t"), ScriptLanguage.PYTHON, ()).entries]
    assert ids == ["t_a_2", "t_a", "t_a_3", "t_a_4", "t_a_3_2", "t_a_2_2"]


def parameter(**said: JsonValue) -> JsonValue:
    return {"name": "bad", "parameters": [{"name": "x", "kind": "option", "options": ["--x"], **said}]}


UNUSABLE: Mapping[str, JsonValue] = {
    "a name of 10 MB": parameter(name="x" * 10_000_000),
    "no name": parameter(name=""),
    "another kind": parameter(kind="weapon"),
    "options that are none": parameter(options={"a": 1}),
    "a bound that is a text": parameter(minimum="many"),
    "a help of 10 MB": {"name": "bad", "help": "x" * 10_000_000},
    "a list instead of a parser": {"name": "bad", "parameters": "all"},
}


@pytest.mark.parametrize("said", UNUSABLE)
def test_one_subcommand_that_cannot_be_used_is_left_out_and_the_others_stay(said: str) -> None:
    commands, left = commands_of("prog", parser({"name": "good"}, UNUSABLE[said]))
    assert [command.words for command in commands] == [("good",)]
    assert [one.operation for one in left] == ["prog bad"]
    assert len(left[0].reason) < 500


TAKEN: JsonValue = {"name": "stdin", "kind": "positional"}
ODD: Mapping[str, JsonValue] = {
    "NUL and half a character": {"name": "odd", "help": "a\0b\ud800c", "parameters": [{"name": "x\ud800", "kind": "flag", "help": "\0"}]},
    "a name of JavaScript": parameter(name="__proto__"),
    "a name without a letter": parameter(name="\N{BULLET}"),
    "a default of another type": parameter(type="integer", default={"deep": [1]}),
    "a default that no number is": parameter(type="number", default=float("inf"), maximum=float("nan")),
    "a number that is too large": parameter(type="integer", default=10**400, minimum=10**400),
    "choices of every type": parameter(choices=[None, {}, [1], True, 1, 1.0, "1", "1"], default={}),
    "names that are taken": {"name": "odd", "parameters": [TAKEN, TAKEN, TAKEN]},
}


@pytest.mark.parametrize("said", ODD)
def test_odd_things_make_a_tool_that_can_be_written_and_read(said: str) -> None:
    commands, left = commands_of("prog", parser(ODD[said]))
    wanted, unfit = fitting(commands)
    assert (len(wanted), left, unfit) == (1, (), ())
    candidate = program_candidate(wanted, Described("tool"), ScriptLanguage.PYTHON, ())
    assert type(candidate).model_validate_json(candidate.model_dump_json()) == candidate
    assert "\0" not in candidate.entries[0].manifest.description
    for text in program_files(wanted, {"prog": "m:f"}).values():
        text.encode()


def test_commands_in_each_other_have_an_end() -> None:
    deep: JsonValue = {"name": "c"}
    for _ in range(100):
        deep = {"name": "c", "commands": [deep]}
    commands, left = commands_of("prog", deep)
    assert (commands, [one.reason for one in left]) == ((), ["It lies below 10 other commands."])


def test_very_many_commands_that_cannot_be_used_are_not_all_looked_at() -> None:
    inner: list[JsonValue] = [{"name": f"g{number}", "commands": [{"name": "?"}, {"name": "!"}]} for number in range(500)]
    commands, left = commands_of("prog", parser(*inner))
    assert (commands, len(left)) == ((), 501)


SHADOWS = ("json", "re", "sys", "os", "program", "site")
MODULE = "import json, os, re, sys\ndef main():\n    print(json.dumps(sys.argv))\n"


@pytest.mark.parametrize("name", SHADOWS)
def test_a_command_that_is_called_like_a_module_is_run(tmp_path: Path, name: str) -> None:
    """The program's own module has the name of our launcher, too."""
    commands, _ = commands_of("prog", parser(*(named(one) for one in SHADOWS)))
    for file, text in program_files(commands, {"prog": "program:main"}).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/program.py").write_text(MODULE)
    entries = program_candidate(commands, Described("t"), ScriptLanguage.PYTHON, ()).entries
    paths = {entry.manifest.tool_id: entry.sources[0].model_dump()["script_path"] for entry in entries}
    script = tmp_path / paths[f"t_{name}"]
    done = subprocess.run([sys.executable, str(script)], input=b"{}", env={}, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["output"] == ["prog", name]
