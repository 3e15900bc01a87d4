"""Checks Dockerfiles: refuses instructions that make the engine itself fetch from the network, past the proxy."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self, cast

from engine.runtimes.docker.building.instructions import DockerfileRefused, Instruction, read_instructions, written
from engine.runtimes.docker_engine.labels import OWN_IMAGES, is_reserved
from toolagent_service.calls.container_names import is_image

_PLAIN = re.compile(r"(?!git@)[\w./*?@+~=,%-]+")
"""No colon, so no address; no variables, which could become one."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_FROM = "--from="
_SCRATCH = "scratch"
_STAGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_LABEL = re.compile(r"([\"']?)([A-Za-z0-9_./-]+)\1=(?:\"[^\"\\`]*\"|'[^'\\`]*'|[^\s\"'\\`]*)(?:\s+|$)")
_OLD_LABEL = re.compile(r"([\"']?)([A-Za-z0-9_./-]+)\1\s+[^=\s].*")
"""`LABEL key value`: everything after the key is its value."""


@dataclass(slots=True)
class _Stages:
    """The stages so far, and the images that the file uses."""

    names: set[str] = field(default_factory=set[str])
    begun: int = 0
    images: dict[str, None] = field(default_factory=dict[str, None])

    def use(self, name: str) -> None:
        """Use a stage, or else an image, which is checked. Raises DockerfileRefused."""
        if name.lower() in self.names or (name.isdecimal() and int(name) < self.begun):
            return
        if not is_image(name):
            raise DockerfileRefused(f"{name[:200]!a} does not determine an image: write the name out, or give the ARG before it a default.")
        if OWN_IMAGES in name.lower():
            raise DockerfileRefused(f"{name[:200]}: an image built for another tool cannot be used.")
        self.images[name] = None


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """A Dockerfile that passed the checks. `bases` are the images that it starts from or copies from."""

    escape: str
    instructions: tuple[Instruction, ...]
    bases: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises DockerfileRefused."""
        escape, read = read_instructions(text)
        defaults: dict[str, str] = {}
        stages = _Stages()
        instructions: list[Instruction] = []
        for one in read:
            checked = one
            if one.keyword == "FROM":
                checked = _begun(one, defaults, stages)
            elif one.keyword == "ARG" and not stages.begun:
                defaults.update(_defaults(one))
            _check(checked, stages)
            instructions.append(checked)
        return cls(escape, tuple(instructions), tuple(stages.images))

    @property
    def runs(self) -> bool:
        """Whether the build runs programs."""
        return any(one.keyword == "RUN" or one.rest.upper().startswith("RUN") for one in self.instructions)

    def labelled(self, labels: Mapping[str, str], arguments: Iterable[str] = ()) -> str:
        """The text for the engine, written from the checked instructions, with these labels on every step's image.

        Each stage gets an ARG for each of `arguments`. Raises DockerfileRefused if the engine could read the text differently.
        """
        label = Instruction("LABEL", " ".join(f"{name}={value}" for name, value in labels.items()))
        begun = [*([label] if labels else ()), *(Instruction("ARG", name) for name in arguments)]
        lines: list[Instruction] = []
        for one in self.instructions:
            lines += [one, *begun] if one.keyword == "FROM" else [one]
        return written(self.escape, lines)


def check_triggers(base: str, triggers: Iterable[str]) -> bool:
    """Check an image's ONBUILD instructions; returns whether they run programs. Raises DockerfileRefused."""
    runs = False
    for trigger in triggers:
        try:
            one = Instruction.read(trigger)
            _check(one, None)
        except DockerfileRefused as refusal:
            raise DockerfileRefused(f"The image {base!r} says ONBUILD {trigger[:200]!a}: {refusal}") from refusal
        runs |= one.keyword == "RUN"
    return runs


def _begun(one: Instruction, defaults: Mapping[str, str], stages: _Stages) -> Instruction:
    """Begin a stage; returns its FROM with the variables replaced."""
    words = [_VARIABLE.sub(lambda found: defaults.get(found[1] or found[2], found[0]), word) for word in one.words]
    whole = Instruction("FROM", " ".join(words))
    whole.require_plain_flags()
    named = whole.arguments
    if not named:
        raise DockerfileRefused("FROM names no image.")
    if len(named) != 1 and not (len(named) == 3 and named[1].upper() == "AS" and _STAGE.fullmatch(named[2])):
        raise DockerfileRefused(f"{whole}: write `FROM image`, or `FROM image AS name`.")
    if named[0].lower() != _SCRATCH:
        stages.use(named[0])
    stages.begun += 1
    if len(named) > 1:
        stages.names.add(named[2].lower())
    return whole


def _defaults(one: Instruction) -> dict[str, str]:
    pairs = (word.partition("=") for word in one.words)
    return {name: value.strip("\"'") for name, equals, value in pairs if equals}


def _check(one: Instruction, stages: _Stages | None) -> None:
    """Check one instruction. Without `stages`, other images are refused. Raises DockerfileRefused."""
    match one.keyword:
        case "ONBUILD":
            _check(Instruction.read(one.rest), stages)
        case "ADD":
            _check_added(one)
        case "COPY":
            _check_copied(one, stages)
        case "LABEL":
            _check_labels(one)
        case "RUN" if one.flags:
            raise DockerfileRefused(f"RUN {one.flags[0]}: the engine's builder here knows no options of RUN.")
        case _:
            pass


def _check_copied(one: Instruction, stages: _Stages | None) -> None:
    for flag in one.flags:
        if flag.startswith("--from"):
            if stages is None:
                raise DockerfileRefused(f"{flag}: it copies from another image.")
            stages.use(flag.removeprefix(_FROM))


def _check_labels(one: Instruction) -> None:
    """Our own labels name the owner of an image."""
    for key in _labels_of(one):
        if is_reserved(key):
            raise DockerfileRefused(f"LABEL {key}: labels that begin like this are this service's own. Choose another.")


def _labels_of(one: Instruction) -> list[str]:
    if old := _OLD_LABEL.fullmatch(one.rest):
        return [old[2]]
    keys: list[str] = []
    at = 0
    while at < len(one.rest):
        found = _LABEL.match(one.rest, at)
        if found is None:
            raise DockerfileRefused(f'LABEL {one.rest[at : at + 80]}: write key=value or key="value", with a plain key and no escapes.')
        keys.append(found[2])
        at = found.end()
    return keys


def _check_added(one: Instruction) -> None:
    words = one.arguments
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
