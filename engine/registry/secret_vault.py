"""Where a literal key from a catalog file is stored, so that only its name is passed on."""

from typing import Protocol


class SecretRefusedError(ValueError):
    """The key cannot be kept; the text says why, without the key."""


class SecretVault(Protocol):
    """`workers.state.secrets.SecretSource` is one."""

    def keep(self, name: str, value: str) -> None:
        """Keep a value under this name. A value that is there already stays. Raises SecretRefusedError."""
        ...


class SecretKeeper(SecretVault, Protocol):
    """One that also gives them back, and forgets them. `workers.state.secrets.SecretSource` is one."""

    def names(self) -> frozenset[str]:
        """Of those that are kept here."""
        ...

    def resolve(self, name: str) -> str | None: ...
    def forget(self, name: str) -> None:
        """Raises SecretRefusedError."""
        ...
