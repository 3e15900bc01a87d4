"""What a provider of models is made with."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Times are in seconds. The key is never shown, nor what may be one in the URL: not in `repr`, not in a message.

    Without `base_url` it is the provider's own service, which requires a key; your own endpoint need not.
    """

    model: str
    api_key: str | None = None
    base_url: str | None = None
    connect_s: float = 10.0
    silence_s: float = 300.0
    """The longest silence. Services send an event every few seconds; a local model reads its prompt in silence."""
    beat_s: float = 1.0
    """Between two reports of progress."""

    @property
    def endpoint(self) -> str:
        """The base URL as it may be told: without user name, password and query; empty where it is not set."""
        plain = re.split(r"[?#]", self.base_url or "", maxsplit=1)[0]
        return re.sub(r"^([^/@]*//)?.*@", r"\1", plain)

    def __repr__(self) -> str:
        return f"ProviderOptions(model={self.model!r}, base_url={self.endpoint!r}, api_key={'set' if self.api_key else 'not set'})"
