"""What every provider of models does, and the two ways in which it fails.

ModelFailure
├── ModelBusy      later it may work: the same request can be sent again
└── ModelRefused   repeating is useless until a setting changes; the message says which
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
    """What came is no answer of the protocol."""


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
    """`retry_after_s` is what the server asks to wait. `usage` is what is known to be paid for all the same: part of an answer had come."""

    def __init__(self, kind: BusyKind, message: str, retry_after_s: float | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.usage = usage


class ModelRefused(ModelFailure):
    """The message says what to do, for instance which setting to look at."""

    def __init__(self, kind: RefusedKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class TurnCancelled(asyncio.CancelledError):
    """It was cancelled after part of an answer had come. `usage` is what is known to be paid for all the same."""

    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self.usage = usage


def unheard(_text: str) -> None:
    """For who waits for the whole answer."""


class ModelProvider(Protocol):
    """One model behind one endpoint. May be asked several times at once."""

    @property
    def name(self) -> str:
        """Of the provider, as the registry has it."""
        ...

    @property
    def model(self) -> str:
        """The name that it is asked for by."""
        ...

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None] = unheard) -> ModelTurn:
        """One turn, without retries.

        While the answer comes, `beat` is told every second or so how far it is, in a few words, and `hear` each piece of its text.
        `cost_usd` of the turn is None: prices are not the provider's. Cancelling closes the connection. Raises ModelBusy or ModelRefused,
        or TurnCancelled.
        """
        ...

    async def aclose(self) -> None:
        """Closes its connections."""
        ...
