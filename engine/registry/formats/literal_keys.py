"""Finds literal keys, tokens and passwords in catalog files, and moves them to the secrets."""

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from pydantic import JsonValue

from engine.registry.secret_vault import SecretRefusedError, SecretVault
from toolagent.contracts.identifiers import SECRET_IN_A_HEADER, SECRET_PATTERN
from toolagent.contracts.records import CatalogFault
from toolagent.core.calls.masking import masked_text

_KEY = r"api[_-]?key|access[_-]?key|private[_-]?key|passw(?:or)?d|authorization|cookie"
_NAMES_A_KEY = re.compile(rf"(?:{_KEY}|token|secret)$", re.IGNORECASE)
# `stop_tokens` are no keys, and `secrets` alone mostly lists names.
_NAMES_KEYS = re.compile(rf"(?:(?:{_KEY}|.secret)s|(?:^|access|api|auth|bearer|refresh)[_-]?tokens)$", re.IGNORECASE)
# These patterns begin at the colon: with the scheme first, a long text would take quadratic time. For a web server a user name alone is
# a key, as in `https://KEY@host`; otherwise it is only a name, as in `ssh://git@host`.
_USER_AND_PASSWORD = re.compile(r"(?<=[A-Za-z0-9+.-])://[^/?#\s:]*:[^/?#\s]*@")
_USER_OF_A_WEB_SERVER = re.compile(r"(?:(?<=http)|(?<=https)|(?<=ws)|(?<=wss))://[^/?#\s]+@", re.IGNORECASE)
# `{key}`, `<key>`, `$KEY` and `***` are placeholders.
_IN_A_QUERY = re.compile(rf"([?&#][\w.-]{{0,60}}?(?:{_KEY}|token|secret)=)(?!secret:|[{{<$*\[])([^&#\s\"'<>]+)", re.IGNORECASE)
_NO_LETTER = re.compile(r"[^A-Z0-9]+")
_GIVEN = frozenset({"env", "headers"})
"""Fields of an MCP server whose values may be keys by their form."""
_NOT_LOOKED_INTO = frozenset({"input_schema", "output_schema", "examples"})
"""They describe parameters: a property may be called `token`."""


@dataclass(slots=True)
class Hidden:
    """An entry without its keys. `refused`: it still has a key that must not be stored."""

    item: JsonValue
    faults: list[CatalogFault] = field(default_factory=list[CatalogFault])
    refused: bool = False


def without_keys(item: JsonValue, owner: str, file: str, where: str, vault: SecretVault) -> Hidden:
    """The entry with `secret:NAME` in place of every literal key. `owner` is the prefix of the names. Faults never quote a key."""
    hiding = _Hiding(owner, file, vault)
    item = hiding.of(item, where, ())
    return Hidden(item, hiding.faults, hiding.refused)


def is_made_for(owner: str, name: str, value: str) -> bool:
    """Whether the secret was made from a literal key of this owner. Other secrets may have the same prefix."""
    stem, _, mark = name.rpartition("_")
    return stem.startswith(f"{_stem(owner)}_") and mark == _mark(stem, value)


class _Hiding:
    def __init__(self, owner: str, file: str, vault: SecretVault) -> None:
        self._owner = owner
        self._file = file
        self._vault = vault
        self.faults: list[CatalogFault] = []
        self.refused = False

    def of(self, item: JsonValue, where: str, path: tuple[str, ...]) -> JsonValue:
        match item:
            case dict():
                return {key: self._member(key, value, f"{where}.{key}", (*path, key)) for key, value in item.items()}
            case list():
                return [self.of(value, f"{where}[{index}]", path) for index, value in enumerate(item)]
            case str():
                return self._text(item, where, path)
            case _:
                return item

    def _member(self, key: str, value: JsonValue, where: str, path: tuple[str, ...]) -> JsonValue:
        if key in _NOT_LOOKED_INTO:
            return value
        several = _NAMES_KEYS.search(key) is not None
        return self._keys(value, where, path, several=several) if several or _NAMES_A_KEY.search(key) else self.of(value, where, path)

    def _keys(self, value: JsonValue, where: str, path: tuple[str, ...], *, several: bool) -> JsonValue:
        """The value of a field named like a key. With `several`, an object has a key under each name."""
        match value:
            case str() if value and not value.startswith("secret:") and not _is_named_header(value, path):
                return self._moved(value, where, path)
            case list():
                return [self._keys(one, f"{where}[{index}]", path, several=several) for index, one in enumerate(value)]
            case dict() if several:
                return {name: self._keys(one, f"{where}.{name}", (*path, name), several=True) for name, one in value.items()}
            case _:
                return self.of(value, where, path)

    def _text(self, text: str, where: str, path: tuple[str, ...]) -> str | None:
        if re.fullmatch(SECRET_PATTERN, text) or _is_named_header(text, path):
            return text
        if path[-2:-1] and path[-2] in _GIVEN and masked_text(text) != text:
            return self._moved(text, where, path)
        if _USER_AND_PASSWORD.search(text) or _USER_OF_A_WEB_SERVER.search(text):
            self._refuse(where, "a user name or password does not belong in a URL: name a secret in `remote_api_key`.")
            return None
        found = [*_IN_A_QUERY.finditer(text)]
        for one in reversed(found):
            moved = self._moved(unquote(one[2]), where, (*path, one[1][1:-1]))
            if moved is None:
                return None
            text = text[: one.start(2)] + moved + text[one.end(2) :]
        return text

    def _moved(self, value: str, where: str, path: tuple[str, ...]) -> str | None:
        name = _name_of((self._owner, *path), value)
        try:
            self._vault.keep(name, value)
        except SecretRefusedError as error:
            self._refuse(where, f"a literal key stands here and could not be moved to the secrets: {error} Write secret:NAME instead.")
            return None
        reason = f"A literal key stands here. It was moved to the secrets of this host as secret:{name}; write that into the file."
        self.faults.append(CatalogFault(file=self._file, field=where, reason=reason))
        return f"secret:{name}"

    def _refuse(self, where: str, reason: str) -> None:
        self.refused = True
        self.faults.append(CatalogFault(file=self._file, field=where, reason=f"This entry is not used: {reason}"))


def _is_named_header(value: str, path: tuple[str, ...]) -> bool:
    return path[-2:-1] == ("headers",) and re.fullmatch(SECRET_IN_A_HEADER, value) is not None


# Cached, because an edit of one entry reads all the others again.
@lru_cache(maxsize=4096)
def _name_of(parts: tuple[str, ...], value: str) -> str:
    """A name that depends on owner and value only: hosts on one database write it into the same rows."""
    name = _stem(*parts)[:110]
    name = name if name[:1].isalpha() else f"KEY_{name}"
    return f"{name}_{_mark(name, value)}"


def _stem(*parts: str) -> str:
    return _NO_LETTER.sub("_", "_".join(parts).upper()).strip("_")


def _mark(name: str, value: str) -> str:
    # A slow hash: names are public, and must not help to guess a weak password.
    return hashlib.scrypt(value.encode(errors="surrogatepass"), salt=name.encode(), n=4096, r=8, p=1, dklen=4).hex().upper()
