"""The commands of a program, from the untrusted description that the reader in the sandbox writes: checked and bounded."""

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
"""JSON readers disagree on larger integers."""
_TEXT = 4_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_USAGE = re.compile(r"^[^\w\n]*usage\b", re.IGNORECASE | re.MULTILINE)

_Text = Annotated[str, Field(max_length=20_000)]
_Names = Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=20)]


class Parameter(Contract):
    """An argument or option. `many`: a list; `repeats`: the option is repeated for each value; `words`: raw options and arguments."""

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
    """A parser with the raw descriptions of its subcommands. `alone`: it also works without a subcommand."""

    name: Annotated[str, Field(max_length=200)] = ""
    help: _Text = ""
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=300)] = ()
    commands: Annotated[tuple[JsonValue, ...], Field(max_length=500)] = ()
    alone: bool = False
    by: Annotated[str, Field(max_length=20)] = ""
    fault: _Text = ""


class Level(Contract):
    """The words of a subcommand and the parameters that follow."""

    words: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()


class Command(Contract):
    """A command of a program. `words` follow the program's name."""

    program: str
    words: tuple[str, ...]
    help: str
    levels: tuple[Level, ...]

    @property
    def named(self) -> str:
        return " ".join((self.program, *self.words))


def commands_of(program: str, described: JsonValue) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    """The commands in the reader's description, and subcommands that cannot be used. Raises ValueError."""
    try:
        read = ReadProgram.model_validate(fit_for_json(described))
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
    """A command for a program with an unknown parser: its help, and any arguments. None if the output is no help.

    Some programs write their usage to stderr and exit with an error.
    """
    said, also = (well_formed(text.decode(errors="replace")).strip() for text in (stdout, stderr))
    text = said if said and code == 0 else next((one for one in (said, also) if _USAGE.search(one[:_TEXT])), "")
    if not text:
        return None
    arguments = Parameter(name="arguments", kind="words", many=True, help="As in the help of the program.")
    return Command(program=program, words=(), help=text[:_TEXT], levels=(Level(parameters=(arguments,)),))


def fit_for_json(value: JsonValue) -> JsonValue:
    """The value with null for numbers that JSON lacks, and U+FFFD for invalid characters. Raises RecursionError."""
    match value:
        case str():
            return well_formed(value)
        case float() if not math.isfinite(value):
            return None
        case int() if abs(value) >= _LARGEST:
            return None
        case list():
            return [fit_for_json(one) for one in value]
        case dict():
            return {well_formed(name): fit_for_json(one) for name, one in value.items()}
        case _:
            return value


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
            try:
                inner = ReadProgram.model_validate(said)
            except ValidationError as error:
                yield LeftOut(f"{named} {name}", _unusable(error))
            else:
                yield from _walked(program, inner, (*words, name), (*above, own))


def _unusable(error: ValidationError | RecursionError) -> str:
    return f"Its parser says what cannot be used: {' '.join(str(error).split())[:300]}"
