"""Recognises Dockerfiles, and the ports that their images serve."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from pydantic import JsonValue

from engine.making.repositories.asides import is_aside
from engine.making.repositories.trees import Tree
from engine.runtimes.docker.building.dockerfiles import Dockerfile, DockerfileRefused
from toolagent.contracts.making import Finding, FindingKind

_MOST = 10
_DEEPEST = 4
_PORT = re.compile(r"(\d{1,5})(?:/tcp)?", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]{0,200}))?\})")
_PAIR = re.compile(r"\b(\w+)=(\"[^\"]*\"|'[^']*'|\S+)")
_MAX_PORT = 65_535


def recognise_dockerfiles(tree: Tree) -> Iterator[Finding]:
    """Dockerfiles that expose a port come first. `details`: `ports`, those of EXPOSE in the last stage; or `refused`, the reason."""
    found = [path for path in tree.files if _is_dockerfile(path.name.lower()) and len(path.parts) <= _DEEPEST]
    findings = [_finding(path, text) for path in found[:_MOST] if (text := tree.text(path)) is not None]
    yield from sorted(findings, key=lambda one: (not one.details.get("ports"), is_aside(one.path), one.path.count("/")))


def _is_dockerfile(name: str) -> bool:
    return name == "dockerfile" or name.startswith("dockerfile.") or name.endswith(".dockerfile")


def _finding(path: PurePosixPath, text: str) -> Finding:
    try:
        ports: list[JsonValue] = [*_exposed(Dockerfile.read(text))]
    except DockerfileRefused as refusal:
        summary = f"A Dockerfile that is not built here: {refusal}"
        details: dict[str, JsonValue] = {"refused": str(refusal)}
    else:
        said = f"port {', '.join(map(str, ports))}" if ports else "no port: it has no EXPOSE that can be read. Add one"
        summary = f"An image that serves {said}."
        details = {"ports": ports}
    return Finding(kind=FindingKind.DOCKERFILE, path=path.as_posix(), summary=summary, details=details)


def _exposed(read: Dockerfile) -> list[int]:
    """The ports of the last stage; variables have the values of earlier ARG and ENV."""
    known: dict[str, str] = {}
    found: dict[int, None] = {}
    for one in read.instructions:
        match one.keyword:
            case "FROM":
                found.clear()
            case "ARG" | "ENV":
                known.update(_defined(one.rest))
            case "EXPOSE":
                words = _VARIABLE.sub(lambda name: known.get(name[1] or name[2]) or name[3] or "", one.rest).split()
                ports = [int(port[1]) for word in words if (port := _PORT.fullmatch(word))]
                found.update(dict.fromkeys(port for port in ports if 0 < port <= _MAX_PORT))
            case _:
                pass
    return list(found)


def _defined(rest: str) -> dict[str, str]:
    pairs = {name: value.strip("\"'") for name, value in _PAIR.findall(rest)}
    name, _, value = rest.partition(" ")
    return pairs or ({name: value.strip()} if value and "=" not in name else {})
