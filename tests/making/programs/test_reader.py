"""Parsers of programs are read without running the programs; here on our own Python, in a process of its own."""

import json
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import cast

import pytest
import uv
from pydantic import JsonValue

from engine.making.failures import LeftOut
from engine.making.openapi.tools import Described
from engine.making.programs.commands import Command, command_of_help, commands_of
from engine.making.programs.tools import commands_file, program_candidate
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.sources import ScriptLanguage

READER = Path(__file__).parents[3] / "engine/making/programs/inside/reader.py"
ACTED = "acted"


def read(folder: Path, text: str, target: str = "prog:main") -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    (folder / "prog.py").write_text(textwrap.dedent(text))
    out = folder / "out.json"
    command = [sys.executable, str(READER), "prog", target, str(out)]
    done = subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, check=True, timeout=60)
    assert ACTED.encode() not in done.stdout
    told = cast("dict[str, JsonValue]", json.loads(out.read_text()))
    return commands_of("prog", told["described"])


def schema_of(commands: tuple[Command, ...], number: int = 0) -> JsonSchema:
    return program_candidate(commands, Described("prog"), ScriptLanguage.PYTHON, ()).entries[number].manifest.input_schema


ARGPARSE = f"""
    import argparse
    def main():
        parser = argparse.ArgumentParser(description="Greets.")
        parser.add_argument("names", nargs="+", help="who")
        parser.add_argument("--times", type=int, default=2)
        parser.add_argument("--mode", choices=["soft", "loud"], default="soft")
        parser.add_argument("--py3-plus", dest="level", action="store_const", const=3)
        parser.add_argument("--py39-plus", dest="level", action="store_const", const=9)
        parser.add_argument("-v", "--verbose", action="count", default=0)
        parser.add_argument("--tag", action="append")
        parser.add_argument("--config", type=argparse.FileType("r"), required=True)
        parser.add_argument("--hidden", help=argparse.SUPPRESS)
        parser.add_argument("--version", action="version", version="1")
        arguments = parser.parse_args()
        print("{ACTED}", arguments)
"""


def test_a_parser_of_argparse_becomes_typed_parameters(tmp_path: Path) -> None:
    commands, left = read(tmp_path, ARGPARSE)
    schema = schema_of(commands)
    properties = cast("dict[str, JsonValue]", schema["properties"])
    assert (len(commands), left, commands[0].help) == (1, (), "Greets.")
    assert schema["required"] == ["names", "config"]
    assert {name: properties[name] for name in properties if name not in ("stdin", "files")} == {
        "names": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "who"},
        "times": {"type": "integer", "default": 2},
        "mode": {"enum": ["soft", "loud"], "default": "soft"},
        "py3_plus": {"type": "boolean", "default": False},
        "py39_plus": {"type": "boolean", "default": False},
        "verbose": {"type": "integer", "minimum": 0, "maximum": 9, "default": 0},
        "tag": {"type": "array", "items": {"type": "string"}},
        "config": {"type": "string", "format": "file-path"},
    }


def test_the_parser_of_a_file_is_read_too(tmp_path: Path) -> None:
    text = f"""
        import argparse
        parser = argparse.ArgumentParser(description="Greets.")
        parser.add_argument("name")
        if __name__ == "__main__":
            parser.parse_args()
            print("{ACTED}")
    """
    commands, left = read(tmp_path, text, str(tmp_path / "prog.py"))
    assert (commands[0].help, left) == ("Greets.", ())


SUBCOMMANDS = f"""
    import argparse
    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--debug", action="store_true")
        kinds = parser.add_subparsers(dest="kind")
        add = kinds.add_parser("add", help="Adds.", aliases=["plus"])
        add.add_argument("a", type=float)
        remote = kinds.add_parser("remote").add_subparsers()
        remote.add_parser("show")
        print("{ACTED}", parser.parse_args())
"""


def test_each_subcommand_is_a_command_with_what_stands_before_it(tmp_path: Path) -> None:
    commands, _ = read(tmp_path, SUBCOMMANDS)
    assert [command.words for command in commands] == [("add",), ("remote", "show")]
    assert [level.words for level in commands[1].levels] == [(), ("remote",), ("show",)]
    assert [one.name for one in commands[0].levels[0].parameters] == ["debug"]
    assert commands[0].help == "Adds."


TYPER = f'''
    import enum
    from pathlib import Path
    from typing import Annotated
    import typer
    app = typer.Typer()
    class Colour(enum.Enum):
        red = "red"
        blue = "blue"
    @app.command()
    def paint(
        file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
        colour: Colour = Colour.red,
        thick: bool = True,
        n: Annotated[int, typer.Option(min=1, max=5)] = 1,
    ):
        """Paints.

        \\b
            as it stands
        \\fNot for readers.
        """
        print("{ACTED}")
    @app.command(hidden=True)
    def secret(): ...
    @app.command()
    def wash(parts: list[str]): ...
    def main():
        app()
'''


def test_an_app_of_typer_becomes_commands(tmp_path: Path) -> None:
    commands, left = read(tmp_path, TYPER)
    assert ([command.words for command in commands], left) == ([("paint",), ("wash",)], ())
    assert commands[0].help == "Paints.\n\n    as it stands"
    properties = cast("dict[str, JsonValue]", schema_of(commands)["properties"])
    assert {name: properties[name] for name in ("file", "colour", "thick", "n")} == {
        "file": {"type": "string", "format": "file-path"},
        "colour": {"enum": ["red", "blue"], "default": "red"},
        "thick": {"type": "boolean", "default": True},
        "n": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
    }


OPTPARSE = f"""
    import optparse
    def main():
        parser = optparse.OptionParser(usage="%prog [options] FILE")
        parser.add_option("-n", "--number", type="int", default=3, help="how many")
        parser.add_option("-q", action="store_true", dest="quiet")
        print("{ACTED}", parser.parse_args())
"""


def test_a_parser_of_optparse_is_read_too(tmp_path: Path) -> None:
    commands, _ = read(tmp_path, OPTPARSE)
    assert [(one.name, one.kind, one.type) for one in commands[0].levels[0].parameters] == [
        ("arguments", "positional", "string"), ("number", "option", "integer"), ("quiet", "flag", "boolean"),
    ]  # fmt: skip


CATCHES = f"""
    import argparse
    def main():
        try:
            argparse.ArgumentParser().parse_args()
        except Exception:
            pass
        print("{ACTED}")
"""
HELPS = """
    import argparse
    def main():
        argparse.ArgumentParser().print_help()
"""


@pytest.mark.parametrize("text", [CATCHES, HELPS])
def test_a_program_that_catches_what_it_can_or_only_prints_help_is_read(tmp_path: Path, text: str) -> None:
    assert len(read(tmp_path, text)[0]) == 1


def test_what_the_reader_says_is_bounded_and_checked() -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        commands_of("prog", {"parameters": [{"name": "x", "kind": "weapon"}]})
    one: JsonValue = {"name": "x"}
    with pytest.raises(ValueError, match="cannot be used"):
        commands_of("prog", {"commands": [*[one] * 501]})
    many: JsonValue = {"commands": [{"name": f"c{number}"} for number in range(300)]}
    commands, left = commands_of("prog", many)
    assert (len(commands), len(left)) == (200, 100)


def test_help_is_told_from_what_was_written_to_take_long() -> None:
    began = time.process_time()
    assert command_of_help("x", 1, b"a" + b"\n" * 50_000 + b"a", b"") is None
    assert time.process_time() - began < 1
    assert command_of_help("x", 2, b"", b"No words.\n\n  Usage: x [words]\n") is not None


def test_how_a_command_is_told_names_its_options() -> None:
    parameter: JsonValue = {"name": "x", "kind": "option", "options": ["-x", "--ex"], "default": "d"}
    commands, _ = commands_of("prog", {"parameters": [parameter]})
    told = json.loads(commands_file(commands, {"prog": "m:f"}))
    assert told["run_prog"]["levels"] == [
        {"words": [], "parameters": [{"name": "x", "kind": "option", "on": "--ex", "default": "d"}], "ends": False}
    ]


DOCOPT = f'''
    """Ships.

    Usage:
      prog new <name>... [--colour=COLOUR] [options]
      prog move <name> <x> [--speed=<kn>] [-v]
      prog (-h | --help)

    Options:
      -h --help        Show this.
      --speed=<kn>     Speed in knots [default: 10].
      -v --verbose     Say more.
      -q               Say less.
    """
    import docopt
    def main():
        print("{ACTED}", docopt.docopt(__doc__))
'''


@pytest.fixture(scope="module", params=["docopt==0.6.2", "docopt-ng==0.9.0"])
def docopt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docopt")
    subprocess.run([uv.find_uv_bin(), "pip", "install", "-q", "--target", str(folder), request.param], check=True, timeout=60)
    return folder


def test_a_usage_of_docopt_is_read_with_its_options_and_any_arguments(tmp_path: Path, docopt: Path) -> None:
    """Commands and repeated arguments are shown as in the usage, which is the tool's description."""
    shutil.copytree(docopt, tmp_path, dirs_exist_ok=True)
    commands, left = read(tmp_path, DOCOPT)
    properties = cast("dict[str, JsonValue]", schema_of(commands)["properties"])
    assert (len(commands), left) == (1, ())
    assert "prog move <name> <x>" in commands[0].help
    assert {name: properties[name] for name in properties if name not in ("stdin", "files")} == {
        "arguments": {"type": "array", "items": {"type": "string"}, "description": "As in the usage."},
        "speed": {"type": "string", "default": "10"},
        "verbose": {"type": "boolean", "default": False},
        "q": {"type": "boolean", "default": False},
        "colour": {"type": "string"},
    }


ENDLESS = """
    import argparse
    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--timeout", type=float, default=float("inf"), help="half \\ud800 a character, \\0")
        parser.add_argument("--scale", type=float, default=float("nan"))
        parser.add_argument("--limit", type=float, choices=[1.5, float("inf")])
        parser.parse_args()
"""


def test_numbers_and_texts_that_json_has_not_are_no_defaults(tmp_path: Path) -> None:
    commands, _ = read(tmp_path, ENDLESS)
    properties = cast("dict[str, dict[str, JsonValue]]", schema_of(commands)["properties"])
    assert properties["timeout"] == {"type": "number", "description": "half \ufffd a character, \ufffd"}
    assert properties["scale"] == {"type": "number"}
    assert properties["limit"] == {"enum": [1.5, "inf"]}
    json.dumps(json.loads(commands_file(commands, {"prog": "m:f"})), allow_nan=False)
