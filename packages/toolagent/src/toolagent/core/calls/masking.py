"""Masks secrets and cuts long values in parameters, commands and texts before they are recorded."""

import itertools
import re

from pydantic import JsonValue

from toolagent.contracts.calls import Caller
from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import MASK, mask_secrets

__all__ = ["DEEPEST", "LONGEST", "masked_caller", "masked_command", "masked_params", "masked_text", "shortened", "without_secret"]

LONGEST = 500
"""Characters of one text."""

MOST = 50
"""Entries of one object or list."""

DEEPEST = 8
"""Levels of objects and lists in one another."""

_SHORTEST_SECRET = 8
"""Characters. Shorter secrets occur in other words, and masking those would reveal the secret."""

_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "authorization", "credential", "credentials", "cookie"}
)
_SECRET_KEYS = frozenset({"api", "access", "private", "secret", "signing", "encryption"})
"""Words that turn a key into a secret: `api_key`."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")
_KNOWN = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Keys with a known form."""
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_NAMED = re.compile(r"""(\b[A-Za-z_][\w-]{0,60})(\\?["']?\s{0,4}(?:=|:(?!//))\s{0,4}\\?["']?)([^\s"'`,;&<>(){}\[\]\\]+)""")
_OPTION = re.compile(r"""(--?[A-Za-z][\w-]{0,60})(\s{1,4}["']?)([^\s"'-][^\s"']*)""")


def masked_params(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Masks values by schema (`writeOnly`, `format: password`) and by names that sound like secrets; cuts long ones."""
    masked = _bounded(mask_secrets(schema, params), 0)
    return masked if isinstance(masked, dict) else {}


def masked_caller(caller: Caller) -> Caller:
    """The caller with its variables masked and cut like parameters without a schema."""
    return caller.model_copy(update={"variables": masked_params({}, caller.variables)})


def masked_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command without the values of options such as `--api-key VALUE` and `--api-key=VALUE`."""
    shown: list[str] = []
    is_secret = False
    for word in command:
        name, equals, _ = word.partition("=")
        names_secret = len(name) <= LONGEST and _sounds_secret(name)
        # A secret may begin with `-` too, so the word after such an option is always masked.
        shown.append(MASK if is_secret else f"{name}={MASK}" if equals and names_secret else shortened(word))
        is_secret = names_secret and not equals and word.startswith("-")
    return tuple(shown[:MOST])


def masked_text(text: str) -> str:
    """Masks keys of known forms, and values beside names that sound like secrets, in a free text. Not cut."""

    def named(found: re.Match[str]) -> str:
        name, between, _ = found.groups()
        return f"{name}{between}{MASK}" if _sounds_secret(name) else found.group()

    plain = _SCHEME.sub(rf"\1\2{MASK}", _KNOWN.sub(MASK, _LOGIN.sub(f"{MASK}@", text)))
    return _OPTION.sub(named, _NAMED.sub(named, plain))


def without_secret(text: str, secret: str | None, mask: str = MASK) -> str:
    """The text with this value masked, if the value has 8 characters or more."""
    return text.replace(secret, mask) if secret and len(secret) >= _SHORTEST_SECRET else text


def shortened(text: str) -> str:
    """At most `LONGEST` characters, and no user name and password in a URL."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
    return _LOGIN.sub(f"{MASK}@", cut)


def _bounded(value: JsonValue, depth: int) -> JsonValue:
    if depth > DEEPEST:
        return "…"
    match value:
        case str():
            return shortened(value)
        case dict():
            kept = {
                shortened(name): MASK if _is_text(inner) and _sounds_secret(name) else _bounded(inner, depth + 1)
                for name, inner in [*value.items()][:MOST]
            }
            return kept | ({"…": f"{len(value) - MOST} more"} if len(value) > MOST else {})
        case list():
            return [_bounded(inner, depth + 1) for inner in value[:MOST]] + ([f"… {len(value) - MOST} more"] if len(value) > MOST else [])
        case _:
            return value


def _is_text(value: JsonValue) -> bool:
    """A number or a boolean under such a name (`max_token`) is no secret; a list or an object may contain one."""
    return isinstance(value, str | list | dict)


def _sounds_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name[:LONGEST])]
    named = {*words, *(first + second for first, second in itertools.pairwise(words))}
    return not named.isdisjoint(_SECRET_WORDS) or any(
        second in {"key", "keys"} and first in _SECRET_KEYS for first, second in itertools.pairwise(words)
    )
