"""What a Dockerfile asks of the engine itself, which answers to no proxy: refused unless it stays on this machine."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, cast

from engine.runtimes.docker.labels import OWN_IMAGES

__all__ = ["Dockerfile", "DockerfileRefused", "check_triggers"]

_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)")
_SPACE = re.compile(r"[\t\v\f\r ]+")
_PLAIN = re.compile(r"[\w./*?@+~=,%-]+")
"""No colon, so no address; nothing that the engine would replace, so nothing that becomes one."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_HEREDOC = re.compile(r"(?:^|\s)\d*<<-?[\"']?[A-Za-z_]")
_SCRATCH = "scratch"


class DockerfileRefused(Exception):
    """It asks for what no tool may have; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    keyword: str
    rest: str

    @classmethod
    def read(cls, line: str) -> Self:
        keyword, *rest = _SPACE.split(line.strip(), maxsplit=1)
        return cls(keyword.upper(), "".join(rest).strip())

    def __str__(self) -> str:
        return f"{self.keyword} {self.rest}"

    @property
    def words(self) -> list[str]:
        return [word for word in _SPACE.split(self.rest) if word]


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """One that asks for nothing beyond its folder and its images. `bases` are those that its stages begin with."""

    escape: str
    instructions: tuple[_Instruction, ...]
    bases: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises DockerfileRefused."""
        escape, lines = _logical_lines(text)
        defaults: dict[str, str] = {}
        stages: set[str] = set()
        instructions: list[_Instruction] = []
        bases: list[str] = []
        for one in map(_Instruction.read, lines):
            checked = one
            if one.keyword == "FROM":
                checked, base = _begun(one, defaults, stages)
                bases += [base] if base else []
            elif one.keyword == "ARG" and not any(before.keyword == "FROM" for before in instructions):
                defaults.update(_defaults(one))
            _check(checked)
            instructions.append(checked)
        return cls(escape, tuple(instructions), tuple(dict.fromkeys(bases)))

    @property
    def runs(self) -> bool:
        """Whether it starts programs."""
        return any(one.keyword == "RUN" or one.rest.upper().startswith("RUN") for one in self.instructions)

    def labelled(self, labels: Mapping[str, str], arguments: Iterable[str] = ()) -> str:
        """The text, for the engine: what was read of it and nothing else, with these labels on the image of every single step.

        Each stage is told the build's arguments of these names.
        """
        begun = ["LABEL " + " ".join(f"{name}={value}" for name, value in labels.items()), *(f"ARG {name}" for name in arguments)]
        lines = [f"# escape={self.escape}"]
        for one in self.instructions:
            lines += [str(one), *begun] if one.keyword == "FROM" else [str(one)]
        return "\n".join(lines) + "\n"


def check_triggers(base: str, triggers: Iterable[str]) -> bool:
    """What an image does to those that are made from it (ONBUILD); whether it starts programs. Raises DockerfileRefused."""
    read = [_Instruction.read(trigger) for trigger in triggers]
    for one in read:
        try:
            _check(one)
        except DockerfileRefused as refusal:
            raise DockerfileRefused(f"The image {base!r} says ONBUILD {one}: {refusal}") from refusal
    return any(one.keyword == "RUN" for one in read)


def _logical_lines(text: str) -> tuple[str, list[str]]:
    """The escape character, and each instruction on a line of its own, without comments."""
    physical = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    escape = _escape(physical)
    continued = re.compile(re.escape(escape) + r"[ \t]*$")
    lines: list[str] = []
    begun: list[str] = []
    for line in physical:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        piece = line if any(begun) else line.lstrip()
        begun.append(continued.sub("", piece))
        if not continued.search(piece):
            lines.append("".join(begun))
            begun = []
    return escape, [line for line in (*lines, "".join(begun)) if line.strip()]


def _escape(lines: Iterable[str]) -> str:
    """Directives come before everything else, comments too."""
    for line in lines:
        found = _DIRECTIVE.fullmatch(line.strip())
        if found is None:
            break
        if found[1].lower() == "escape":
            return found[2]
    return "\\"


def _begun(one: _Instruction, defaults: Mapping[str, str], stages: set[str]) -> tuple[_Instruction, str | None]:
    """A stage, with the image it begins with written out; that image, unless it is another stage."""
    words = [_VARIABLE.sub(lambda found: defaults.get(found[1] or found[2], found[0]), word) for word in one.words]
    named = [word for word in words if not word.startswith("--")]
    if not named:
        raise DockerfileRefused("FROM names no image.")
    base = named[0]
    if any(sign in base for sign in "$\"'\\"):
        raise DockerfileRefused(f"FROM {base} leaves open which image it means: write it out, or give the ARG before it a default.")
    is_stage = base.lower() in stages or base.lower() == _SCRATCH
    if len(named) > 2:
        stages.add(named[2].lower())
    return _Instruction("FROM", " ".join(words)), None if is_stage else base


def _defaults(one: _Instruction) -> dict[str, str]:
    pairs = (word.partition("=") for word in one.words)
    return {name: value.strip("\"'") for name, equals, value in pairs if equals}


def _check(one: _Instruction) -> None:
    """Raises DockerfileRefused."""
    match one.keyword:
        case "ONBUILD":
            _check(_Instruction.read(one.rest))
        case "ADD":
            _check_added(one)
        case "FROM" | "COPY" if any(OWN_IMAGES in image for image in _images(one)):
            raise DockerfileRefused(f"{one}: the images of tools are for nobody else.")
        case _:
            pass
    if one.keyword in ("RUN", "COPY", "ADD") and _HEREDOC.search(one.rest):
        raise DockerfileRefused(f"{one.keyword} <<…: write the lines into a file of the folder; here documents are not supported.")


def _images(one: _Instruction) -> list[str]:
    return one.words if one.keyword == "FROM" else [word for word in one.words if word.startswith("--from")]


def _check_added(one: _Instruction) -> None:
    words = one.words
    while words and words[0].startswith("--"):
        words = words[1:]
    sources = (_listed(" ".join(words)) or words)[:-1]
    for source in sources:
        if not _PLAIN.fullmatch(source):
            message = (
                f"ADD {source}: the engine itself would fetch it, past every rule. Name a file of the folder in plain letters, "
                "use COPY, or fetch it with RUN from a host that the tool may reach."
            )
            raise DockerfileRefused(message)


def _listed(text: str) -> list[str]:
    try:
        read: object = json.loads(text)
    except ValueError:
        return []
    return [str(word) for word in cast("list[object]", read)] if isinstance(read, list) else []
