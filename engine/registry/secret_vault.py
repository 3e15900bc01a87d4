"""Stores literal keys of catalog files, so that the catalog holds only their names."""

from typing import Protocol


class SecretRefusedError(ValueError):
    """The key cannot be stored. The message says why, without the key."""


class SecretVault(Protocol):
    """Stores secrets, as `workers.state.secrets.SecretSource` does."""

    def keep(self, name: str, value: str) -> None:
        """Store a value under this name. An existing value stays. Raises SecretRefusedError."""
        ...


class SecretKeeper(SecretVault, Protocol):
    """Also reads and removes secrets."""

    def names(self) -> frozenset[str]:
        """Names of the stored secrets."""
        ...

    def resolve(self, name: str) -> str | None: ...
    def forget(self, name: str) -> None:
        """Raises SecretRefusedError."""
        ...
