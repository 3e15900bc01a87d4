"""Finding keys, tokens and passwords in what a catalog file says, and putting them where secrets are."""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from engine.registry.secret_vault import SecretRefusedError, SecretVault
from toolagent.contracts.records import CatalogFault

__all__ = ["Hidden", "without_keys"]

_NAMES_A_KEY = re.compile(r"(api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(or)?d|authorization|cookie)$", re.IGNORECASE)
# Begins at the colon: a scheme in front would be sought from every letter of a long text anew.
_CREDENTIALS = re.compile(r"(?<=[A-Za-z0-9+.-])://[^/?#\s]*@")
_NO_LETTER = re.compile(r"[^A-Z0-9]+")
_NOT_LOOKED_INTO = frozenset({"input_schema", "output_schema", "examples"})
"""They speak of parameters, in which a property may be called `token`."""


@dataclass(slots=True)
class Hidden:
    """An entry without its keys; `refused` when it still has one that must not be kept."""

    item: JsonValue
    faults: list[CatalogFault] = field(default_factory=list[CatalogFault])
    refused: bool = False


def without_keys(item: JsonValue, owner: str, file: str, where: str, vault: SecretVault) -> Hidden:
    """The entry with `secret:NAME` in place of every literal key; `owner` begins the names. Says what was moved, never the key."""
    hiding = _Hiding(owner, file, vault)
    item = hiding.of(item, where, ())
    return Hidden(item, hiding.faults, hiding.refused)


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
            case str() if _CREDENTIALS.search(item):
                self._refuse(where, "a user name or password does not belong in a URL: name a secret in `remote_api_key`.")
                return None
            case _:
                return item

    def _member(self, key: str, value: JsonValue, where: str, path: tuple[str, ...]) -> JsonValue:
        if key in _NOT_LOOKED_INTO:
            return value
        if not isinstance(value, str) or not value or value.startswith("secret:") or not _NAMES_A_KEY.search(key):
            return self.of(value, where, path)
        try:
            name = self._vault.keep(_name_of((self._owner, *path)), value)
        except SecretRefusedError as error:
            self._refuse(where, f"a literal key stands here and could not be moved to the secrets: {error} Write secret:NAME instead.")
            return None
        reason = f"A literal key stands here. It was moved to the secrets of this host as secret:{name}; write that into the file."
        self.faults.append(CatalogFault(file=self._file, field=where, reason=reason))
        return f"secret:{name}"

    def _refuse(self, where: str, reason: str) -> None:
        self.refused = True
        self.faults.append(CatalogFault(file=self._file, field=where, reason=f"This entry is not used: {reason}"))


def _name_of(parts: tuple[str, ...]) -> str:
    name = _NO_LETTER.sub("_", "_".join(parts).upper()).strip("_")[:120]
    return name if name[:1].isalpha() else f"KEY_{name}"
