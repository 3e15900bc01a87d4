"""What the ledger says of a turn of a model: whether it was recorded, and what lost attempts at it cost."""

from dataclasses import dataclass

from toolagent_service.contracts.model import ModelTurn, Usage


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn that was paid for. `position` is that of its message in the transcript."""

    turn: ModelTurn
    position: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Of whom a turn was asked, and with which prompt (`name@version`)."""

    provider: str = ""
    model: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """What attempts at one turn used that broke off, together."""

    attempts: int
    usage: Usage
    cost_usd: float


@dataclass(frozen=True, slots=True)
class TurnState:
    """What is known of a turn: itself, if it was had before, and what broke off."""

    recorded: RecordedTurn | None
    lost: Lost
