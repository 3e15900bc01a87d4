"""The environment variables of a source.

Secret ones never appear where the container engine shows them.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from engine.runtimes.failures import StartFailed
from engine.runtimes.given_secrets import remember_given
from engine.runtimes.sandbox.identity import Identity
from toolagent.contracts.calls import ErrorType

GIVEN = "/run/tool-agent.given"
"""The path in the container of the file that `handed_over` writes; `command_child.py` reads it before it becomes the tool."""

_WHOLE = re.compile(r"secret:([A-Z][A-Z0-9_]*)")
SECRET_IN_A_QUERY = re.compile(r"(?<==)secret:([A-Z][A-Z0-9_]*)(?=[&#]|$)")


@dataclass(frozen=True, slots=True)
class Variables:
    """`plain` variables may be seen by every user of the engine."""

    plain: Mapping[str, str]
    secret: Mapping[str, str] = field(repr=False)


class _Given(Protocol):
    """A source with environment variables."""

    @property
    def type(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...


def variables_of(source: _Given, tool_id: str, resolve: Callable[[str], str | None]) -> Variables:
    """Replace `secret:NAME`, also in a URL's query, by that secret. Raises StartFailed if it is not set."""
    for word in getattr(source, "command", ()):
        if _WHOLE.fullmatch(word) or SECRET_IN_A_QUERY.search(word):
            message = f"The command of the {source.type} source of {tool_id!r} names a secret, which all could see: use `environment`."
            raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"field": "command"})

    def value(name: str) -> str:
        if found := resolve(name):
            remember_given(found)
            return found
        message = f"The secret {name!r} in the `environment` of {tool_id!r} is not set. Set TOOL_AGENT_SECRET_{name}."
        raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"secret": name, "setting": f"TOOL_AGENT_SECRET_{name}"})

    resolved = {name: _resolved(text, value) for name, text in source.environment.items()}
    secret = {name: text for name, text in resolved.items() if text != source.environment[name]}
    for text in secret.values():
        remember_given(text)
    return Variables({name: text for name, text in resolved.items() if name not in secret}, secret)


def _resolved(text: str, value: Callable[[str], str]) -> str:
    if whole := _WHOLE.fullmatch(text):
        return value(whole[1])
    return SECRET_IN_A_QUERY.sub(lambda named: quote(value(named[1]), safe=""), text)


@contextlib.contextmanager
def handed_over(given: Mapping[str, str], folder: Path, identity: Identity | None) -> Generator[Path | None]:
    """A file that only the container's user can read, removed after the block; None if nothing is secret. Raises OSError."""
    if not given:
        yield None
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"given-{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            target.write(b"\0".join(f"{name}={text}".encode() for name, text in given.items()))
        if identity is not None:
            identity.own(file)
        yield file
    finally:
        file.unlink(missing_ok=True)
