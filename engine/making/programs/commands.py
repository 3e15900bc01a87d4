"""A program's commands, as its parser says them: what is read in the sandbox is other people's, so it is checked and bounded here."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from toolagent.contracts.contract import Contract

__all__ = ["Command", "Level", "NotRead", "Parameter", "ReadProgram", "commands_of"]

_MOST_COMMANDS = 200
_TEXT = 4_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")

_Text = Annotated[str, Field(max_length=20_000)]
_Names = Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=20)]


class Parameter(Contract):
    """One argument or option. `many`: a list; `repeats`: its option is given once for each."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    options: _Names = ()
    off: _Names = ()
    help: _Text = ""
    metavar: _Text = ""
    kind: Literal["positional", "option", "flag", "count"]
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
    exclusive: bool = False


class ReadProgram(Contract):
    """A parser, with those of its subcommands. `alone`: it does something without one of them too."""

    name: Annotated[str, Field(max_length=200)] = ""
    help: _Text = ""
    parameters: Annotated[tuple[Parameter, ...], Field(max_length=300)] = ()
    commands: Annotated[tuple["ReadProgram", ...], Field(max_length=500)] = ()
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


@dataclass(frozen=True, slots=True)
class NotRead:
    """A command that becomes no tool, and why."""

    command: str
    reason: str


def commands_of(program: str, described: JsonValue) -> tuple[tuple[Command, ...], tuple[NotRead, ...]]:
    """Of what the reader in the sandbox has said. Raises ValueError."""
    try:
        read = ReadProgram.model_validate(described)
    except (ValidationError, RecursionError) as error:
        raise ValueError(f"Its parser says what cannot be used: {str(error)[:300]}") from error
    found: list[Command] = []
    left: list[NotRead] = []
    for one in _walked(program, read, (), ()):
        if isinstance(one, NotRead):
            left.append(one)
        elif len(found) == _MOST_COMMANDS:
            left.append(NotRead(" ".join((program, *one.words)), f"There are more than {_MOST_COMMANDS} commands."))
        else:
            found.append(one)
    return tuple(found), tuple(left)


def _walked(program: str, read: ReadProgram, words: tuple[str, ...], above: Sequence[Level]) -> Iterator[Command | NotRead]:
    named = " ".join((program, *words))
    if read.fault:
        yield NotRead(named, read.fault)
        return
    own = Level(words=words[-1:], parameters=read.parameters)
    if not read.commands or read.alone:
        yield Command(program=program, words=words, help=read.help.strip()[:_TEXT], levels=(*above, own))
    for inner in read.commands:
        if _NAME.fullmatch(inner.name):
            yield from _walked(program, inner, (*words, inner.name), (*above, own))
        else:
            yield NotRead(f"{named} {inner.name[:100]}", "Its name cannot be part of a tool's.")
