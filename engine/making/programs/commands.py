"""A program's commands, as its parser says them: what is read in the sandbox is other people's, so it is checked and bounded here."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from engine.making.failures import LeftOut
from toolagent.contracts.contract import Contract
from toolagent.core.texts import well_formed

_MOST_COMMANDS = 200
_MOST_NOT_READ = 500
_DEEPEST = 10
_LARGEST = 1 << 63
"""Readers of JSON disagree on larger whole numbers."""
_TEXT = 4_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_USAGE = re.compile(r"^[^\w\n]*usage\b", re.IGNORECASE | re.MULTILINE)

_Text = Annotated[str, Field(max_length=20_000)]
_Names = Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=20)]


class Parameter(Contract):
    """One argument or option. `many`: a list; `repeats`: its option is given once for each; `words`: options and arguments as they are."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    options: _Names = ()
    off: _Names = ()
    help: _Text = ""
    metavar: _Text = ""
    kind: Literal["positional", "option", "flag", "count", "words"]
    type: Literal["string", "integer", "number", "boolean", "file"] = "string"
    required: bool = False
    default: JsonValue = None
    choices: Annotated[tuple[JsonValue, ...] | None, Field(max_length=500)] = None
    minimum: float | None = None
    maximum: float | None = None
    many: bool = False
    repeats: bool = False
    count: Annotated[int | None, Field(ge=1, le=100)] = None
    least: Annotated[int, Field(ge=0, le=100)] = 0


class ReadProgram(Contract):
    """A parser, with those of its subcommands as they were said. `alone`: it does something without one of them too."""

    name: Annotated[str, Field(max_length=200)] = ""
    help: _Text = ""
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=300)] = ()
    commands: Annotated[tuple[JsonValue, ...], Field(max_length=500)] = ()
    alone: bool = False
    by: Annotated[str, Field(max_length=20)] = ""
    fault: _Text = ""


class Level(Contract):
    """The words of a subcommand and the parameters that stand behind them."""

    words: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()


class Command(Contract):
    """One thing a program can be told to do. `words` name it behind the program's name."""

    program: str
    words: tuple[str, ...]
    help: str
    levels: tuple[Level, ...]

    @property
    def named(self) -> str:
        return " ".join((self.program, *self.words))


def commands_of(program: str, described: JsonValue) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    """Of what the reader in the sandbox has said; a subcommand that says what cannot be used is left out. Raises ValueError."""
    try:
        described = fit_for_json(described)
        read = ReadProgram.model_validate(described)
    except (ValidationError, RecursionError) as error:
        raise ValueError(_unusable(error)) from error
    found: list[Command] = []
    left: list[LeftOut] = []
    for one in _walked(program, read, (), ()):
        if isinstance(one, LeftOut):
            left.append(one)
        elif len(found) == _MOST_COMMANDS:
            left.append(LeftOut(one.named, f"There are more than {_MOST_COMMANDS} commands."))
        else:
            found.append(one)
        if len(left) > _MOST_NOT_READ:
            left[-1] = LeftOut(program, f"More than {_MOST_NOT_READ} of its commands cannot be tools: the others were not looked at.")
            break
    return tuple(found), tuple(left)


def command_of_help(program: str, code: object, stdout: bytes, stderr: bytes) -> Command | None:
    """Of a parser that is none we know: its help, and any arguments. None for what is no help.

    Some say how they are used as one says what went wrong: on stderr, with an exit code.
    """
    said, also = (well_formed(text.decode(errors="replace")).strip() for text in (stdout, stderr))
    text = said if said and code == 0 else next((one for one in (said, also) if _USAGE.search(one[:_TEXT])), "")
    if not text:
        return None
    arguments = Parameter(name="arguments", kind="words", many=True, help="As in the help of the program.")
    return Command(program=program, words=(), help=text[:_TEXT], levels=(Level(parameters=(arguments,)),))


def fit_for_json(value: JsonValue) -> JsonValue:
    """With null for numbers that JSON has not, and U+FFFD for what no text can hold. Raises RecursionError."""
    match value:
        case str():
            return well_formed(value)
        case float():
            return value if math.isfinite(value) else None
        case bool():
            return value
        case int():
            return value if abs(value) < _LARGEST else None
        case list():
            return [fit_for_json(one) for one in value]
        case dict():
            return {well_formed(name): fit_for_json(one) for name, one in value.items()}
        case None:
            return None


def _walked(program: str, read: ReadProgram, words: tuple[str, ...], above: Sequence[Level]) -> Iterator[Command | LeftOut]:
    named = " ".join((program, *words))
    if read.fault:
        yield LeftOut(named, read.fault)
        return
    own = Level(words=words[-1:], parameters=read.parameters)
    if not read.commands or read.alone:
        yield Command(program=program, words=words, help=read.help.strip()[:_TEXT], levels=(*above, own))
    for said in read.commands:
        name = said.get("name") if isinstance(said, dict) else None
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield LeftOut(f"{named} {str(name)[:100]}", "Its name cannot be part of a tool's.")
        elif len(words) == _DEEPEST:
            yield LeftOut(f"{named} {name}", f"It lies below {_DEEPEST} other commands.")
        else:
            yield from _inner(program, said, (*words, name), (*above, own))


def _inner(program: str, said: JsonValue, words: tuple[str, ...], above: Sequence[Level]) -> Iterator[Command | LeftOut]:
    try:
        inner = ReadProgram.model_validate(said)
    except ValidationError as error:
        yield LeftOut(" ".join((program, *words)), _unusable(error))
    else:
        yield from _walked(program, inner, words, above)


def _unusable(error: ValidationError | RecursionError) -> str:
    return f"Its parser says what cannot be used: {' '.join(str(error).split())[:300]}"
