"""What a provider of models is made with."""

from dataclasses import dataclass

__all__ = ["ProviderOptions"]


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Times are in seconds. The key is never shown: not in `repr`, not in a message.

    Without `base_url` it is the provider's own service, which takes nobody without a key; one's own endpoint may.
    """

    model: str
    api_key: str | None = None
    base_url: str | None = None
    connect_s: float = 10.0
    silence_s: float = 300.0
    """How long nothing may come. Services send a sign of life every few seconds; a local model reads its prompt in silence."""
    beat_s: float = 1.0
    """How often one is told of the progress."""

    def __repr__(self) -> str:
        return f"ProviderOptions(model={self.model!r}, base_url={self.base_url!r}, api_key={'set' if self.api_key else 'not set'})"
