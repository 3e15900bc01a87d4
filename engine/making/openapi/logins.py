"""Finds the variable of a server that we run that holds the credential for its operations."""

import re
from collections.abc import Collection, Iterator

from pydantic import ValidationError

from engine.making.openapi.credentials import Credential
from engine.making.openapi.documents.document import DocumentRefused
from engine.making.openapi.names import HUMP
from toolagent.contracts.sources import Login

_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]+")
_TOKENS = ("BEARER_TOKEN", "ACCESS_TOKEN", "AUTH_TOKEN", "API_TOKEN")
_KEYS = ("API_KEY", "APIKEY", "API_TOKEN", "ACCESS_KEY")
_LOGINS = ("BASIC_AUTH", "LOGIN")
_LONGEST = 100


def login_of(credential: Credential | None, variables: Collection[str]) -> Login | None:
    """Looks for a variable with the name of the header or field, of the document's security scheme, or a usual name.

    Raises DocumentRefused if there is none; the task can give one in `env`.
    """
    if credential is None:
        return None
    if not credential.is_known or credential.kind == "client_credentials":
        raise DocumentRefused("It wants to be shown something that is no single key or login.")
    wanted = [name for name in dict.fromkeys(_names(credential)) if name]
    by_name = {name.upper(): name for name in variables}
    found = next((by_name[name] for name in wanted if name in by_name), "")
    if not found:
        what = "a login (`user:password`)" if credential.kind == "basic" else "a key"
        name = wanted[0][:_LONGEST]
        raise DocumentRefused(f"It requires {what}, which is not given. Give it in `env` of the task as {name}, by the name of a secret.")
    try:
        if credential.kind == "basic":
            return Login(variable=found, scheme="Basic")
        return Login(variable=found, place=credential.place, name=credential.name, scheme=credential.word)
    except ValidationError as error:
        raise DocumentRefused(
            f"It wants a key as {credential.name[:_LONGEST]!r} in the {credential.place}, which cannot be sent."
        ) from error


def _names(credential: Credential) -> Iterator[str]:
    """Names in capitals, the likeliest first."""
    usual = _LOGINS if credential.kind == "basic" else _TOKENS if credential.word else _KEYS
    if usual is _KEYS:
        name = _variable(credential.name)
        yield from (name.removeprefix("X_"), name)
    yield usual[0]
    yield _variable(credential.scheme)
    yield from usual
    yield from _KEYS if usual is _TOKENS else ()


def _variable(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", HUMP.sub("_", name).upper()).strip("_")
