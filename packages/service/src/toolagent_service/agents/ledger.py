"""Turns of models in the ledger: whether they are recorded, and the cost of lost attempts."""

from dataclasses import dataclass

from toolagent_service.contracts.model import ModelTurn, Usage


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A paid turn. `position` is that of its message in the transcript."""

    turn: ModelTurn
    position: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The provider and model of a turn, and its prompt (`name@version`)."""

    provider: str = ""
    model: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The total usage of attempts at one turn that broke off."""

    attempts: int
    usage: Usage
    cost_usd: float


@dataclass(frozen=True, slots=True)
class TurnState:
    """The state of a turn: the recorded turn, if any, and lost attempts."""

    recorded: RecordedTurn | None
    lost: Lost
