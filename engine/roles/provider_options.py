"""Options of a provider of models."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Times are in seconds. `repr` and messages show neither the key nor parts of the URL that may be one.

    Without `base_url` the provider's own service answers, which requires a key. Other endpoints may need none.
    """

    model: str
    api_key: str | None = None
    base_url: str | None = None
    connect_s: float = 10.0
    silence_s: float = 300.0
    """The longest silence: services send an event every few seconds, but a local model reads its prompt in silence."""
    beat_s: float = 1.0
    """Between two reports of progress."""

    @property
    def endpoint(self) -> str:
        """The base URL without user name, password and query; empty if none is set."""
        plain = re.split(r"[?#]", self.base_url or "", maxsplit=1)[0]
        return re.sub(r"^([^/@]*//)?.*@", r"\1", plain)

    def __repr__(self) -> str:
        return f"ProviderOptions(model={self.model!r}, base_url={self.endpoint!r}, api_key={'set' if self.api_key else 'not set'})"
