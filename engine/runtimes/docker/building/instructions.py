"""Parses the instructions of a Dockerfile, and writes them in a form that every builder reads alike."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

_BLANK = " \t"
"""Space within an instruction. Builders also accept other characters, each its own set, so these are refused."""
_SPACE = re.compile(r"[ \t]+")
_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)")
_KEYWORD = re.compile(r"[A-Za-z]+")
_HEREDOC = re.compile(r"(?<!<)<<(?!<)")
_WITH_HEREDOCS = ("RUN", "COPY", "ADD")
_FLAG = re.compile(r"--[a-z][a-z-]*(?:=[^\s\"'\\`]*)?")
_WITH_FLAGS = ("FROM", "RUN", "COPY", "ADD", "HEALTHCHECK")
_ESCAPES = ("\\", "`")


class DockerfileRefused(Exception):
    """The Dockerfile is not allowed; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Instruction:
    keyword: str
    rest: str

    @classmethod
    def read(cls, line: str) -> Self:
        """Parse one line. Raises DockerfileRefused if it could be read in several ways."""
        strange = next((sign for sign in line if sign not in _BLANK and (sign.isspace() or sign < " " or "\x7f" <= sign <= "\x9f")), None)
        if strange is not None:
            raise DockerfileRefused(f"{line[:60]!a} has the character {strange!a}, which looks like a space: write a space.")
        keyword, *rest = _SPACE.split(line.strip(_BLANK), maxsplit=1)
        if not _KEYWORD.fullmatch(keyword):
            raise DockerfileRefused(f"{keyword[:60]!a} is not an instruction.")
        one = cls(keyword.upper(), "".join(rest))
        one.require_plain_flags()
        if one.keyword in _WITH_HEREDOCS and _HEREDOC.search(one.rest):
            raise DockerfileRefused(f"{one.keyword} <<…: write the lines into a file of the folder; here documents are not supported.")
        return one

    def __str__(self) -> str:
        return f"{self.keyword} {self.rest}"

    @property
    def words(self) -> list[str]:
        return [word for word in _SPACE.split(self.rest) if word]

    @property
    def flags(self) -> list[str]:
        """Words like `--name=value` before all others."""
        words = self.words
        first = next((index for index, word in enumerate(words) if not word.startswith("--")), len(words))
        return words[:first] if self.keyword in _WITH_FLAGS else []

    @property
    def arguments(self) -> list[str]:
        return self.words[len(self.flags) :]

    def require_plain_flags(self) -> None:
        """Raises DockerfileRefused for quotes in a flag: the builder would read another word."""
        for flag in self.flags:
            if not _FLAG.fullmatch(flag):
                raise DockerfileRefused(f"{self.keyword} {flag}: write the option without quotes and escapes.")


def read_instructions(text: str) -> tuple[str, list[Instruction]]:
    """The escape character, and the instructions without comments. Raises DockerfileRefused."""
    escape, lines = _logical_lines(text)
    for line in lines:
        if line.rstrip(_BLANK).endswith(escape):
            raise DockerfileRefused(f"{line[:60]!a} ends with {escape!r}, after which something must follow.")
    return escape, [Instruction.read(line) for line in lines]


def written(escape: str, instructions: Sequence[Instruction]) -> str:
    """The text for the engine, one line each. Raises DockerfileRefused if it does not parse to the same instructions."""
    text = "\n".join([f"# escape={escape}", *map(str, instructions)]) + "\n"
    if read_instructions(text) != (escape, [*instructions]):
        raise DockerfileRefused("Builders could read it differently: write each instruction on a line of its own, in plain letters.")
    return text


def _logical_lines(text: str) -> tuple[str, list[str]]:
    """The escape character, and each instruction on a line of its own, without comments."""
    physical = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    escape = _escape(physical)
    continued = re.compile(re.escape(escape) + r"[ \t]*$")
    lines: list[str] = []
    begun: list[str] = []
    for line in physical:
        bare = line.lstrip(_BLANK)
        if not bare or bare.startswith("#"):
            continue
        piece = line if any(begun) else bare
        begun.append(continued.sub("", piece))
        if not continued.search(piece):
            lines.append("".join(begun))
            begun = []
    return escape, [line for line in (*lines, "".join(begun)) if line.strip(_BLANK)]


def _escape(lines: Iterable[str]) -> str:
    """The escape character from the directives, which precede everything else. Raises DockerfileRefused."""
    for line in lines:
        found = _DIRECTIVE.fullmatch(line.strip())
        if found is None:
            break
        if found[1].lower() == "escape":
            if found[2] not in _ESCAPES:
                raise DockerfileRefused(f"# escape={found[2]}: it is \\ or `.")
            return found[2]
    return "\\"
