"""The protocol of providers of models, and their failures.

ModelFailure
├── ModelBusy      the same request may succeed later
└── ModelRefused   the request fails until a setting changes; the message names it
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from toolagent_service.contracts.model import ModelRequest, ModelTurn, Usage


class BusyKind(StrEnum):
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    CUT = "cut"
    """The stream ended before the answer was complete."""
    MALFORMED = "malformed"
    """The answer breaks the protocol."""


class RefusedKind(StrEnum):
    NO_KEY = "no_key"
    UNAUTHENTICATED = "unauthenticated"
    PAYMENT = "payment"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    TOO_LARGE = "too_large"
    BAD_REQUEST = "bad_request"


class ModelFailure(Exception):
    """A model gave no answer. The message is for a person and holds no key."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ModelBusy(ModelFailure):
    """`retry_after_s` is the wait that the server asks for. `usage` was paid for a partial answer."""

    def __init__(self, kind: BusyKind, message: str, retry_after_s: float | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind, self.retry_after_s, self.usage = kind, retry_after_s, usage


class ModelRefused(ModelFailure):
    """The message says what to do, for example which setting to check."""

    def __init__(self, kind: RefusedKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TurnCancelled(asyncio.CancelledError):
    """The turn was cancelled after part of an answer had come. `usage` was paid for it."""

    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self.usage = usage


def unheard(_text: str) -> None:
    """Ignores the text, for callers that wait for the whole answer."""


class ModelProvider(Protocol):
    """One model behind one endpoint. It answers several requests at once."""

    @property
    def name(self) -> str:
        """The name of the provider in the registry."""
        ...

    @property
    def model(self) -> str:
        """The name of the model in requests."""
        ...

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None] = unheard) -> ModelTurn:
        """One turn, without retries.

        While the answer comes, `beat` gets its progress about every second, and `hear` each piece of its text. `cost_usd` of the turn is
        None, because providers know no prices. Cancelling closes the connection. Raises ModelBusy, ModelRefused, TurnCancelled.
        """
        ...

    async def aclose(self) -> None:
        """Closes the connections."""
        ...
