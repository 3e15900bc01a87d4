"""What is going to be asked and who is going to be killed: all of it follows from the seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_LONGEST_PAUSE_S = 3.0
_WAITING, _TWINS, _THROUGH_UP, _CANCELLED = 0.7, 0.1, 0.4, 0.12
"""Shares of the calls."""

_LATEST_CANCEL_S = 4.0


class Door(StrEnum):
    """Where a call comes in. `up` has a worker in its own process and answers from the record; `api` waits for Temporal."""

    API = "api"
    UP = "up"


class Victim(StrEnum):
    WORKER_1 = "worker-1"
    WORKER_2 = "worker-2"
    API = "api"
    UP = "up"
    TEMPORAL = "temporal"
    RENTER = "renter"
    """A caller that has sessions of a group."""


SERVICE = (Victim.WORKER_1, Victim.WORKER_2, Victim.API, Victim.UP, Victim.TEMPORAL)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of call. `acts` says that it leaves an effect, `once` that it may leave no second one; it works for `seconds`."""

    name: str
    tool_id: str
    weight: int
    acts: bool = False
    once: bool = False
    seconds: float = 0.0


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("fast builtin", "echo", 30),
        Kind("HTTP, no effect", "bench_free", 10),
        Kind("idempotent", "bench_again", 20, acts=True),
        Kind("acts once", "bench_acting", 20, acts=True, once=True),
        Kind("idempotent, slow", "bench_again", 5, acts=True, seconds=2.0),
        Kind("acts once, slow", "bench_acting", 15, acts=True, once=True, seconds=2.0),
    )
}


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """`twins` is how many ask at once under the one key; `waits` whether they wait for the result or are told a task. Before it the caller
    thinks for `pause_s`, so that the kills find calls to hit. `cancel_after_s` seconds after that somebody begins to ask for its end."""

    key: str
    kind: str
    waits: bool
    twins: int
    door: Door = Door.API
    pause_s: float = 0.0
    cancel_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """`after_s` seconds after the last one was up again or being started; it stays dead for `rest_s`."""

    victim: Victim
    after_s: float
    rest_s: float


def plan_calls(seed: int, calls: int) -> list[PlannedCall]:
    chance = random.Random(f"calls {seed}")  # noqa: S311 - it has to be repeatable
    names, weights = list(KINDS), [kind.weight for kind in KINDS.values()]
    return [
        PlannedCall(
            key=f"chaos-{seed}-{number}",
            kind=chance.choices(names, weights)[0],
            waits=chance.random() < _WAITING,
            twins=2 if chance.random() < _TWINS else 1,
            door=Door.UP if chance.random() < _THROUGH_UP else Door.API,
            pause_s=chance.uniform(0, _LONGEST_PAUSE_S),
            cancel_after_s=chance.uniform(0, _LATEST_CANCEL_S) if chance.random() < _CANCELLED else None,
        )
        for number in range(calls)
    ]


def plan_kills(seed: int, kills: int, victims: Sequence[Victim] = SERVICE) -> list[Kill]:
    """The first ones hit each victim once, so that a short run has them all."""
    chance = random.Random(f"kills {seed}")  # noqa: S311 - it has to be repeatable
    order = chance.sample(victims, len(victims)) + [chance.choice(victims) for _ in range(kills)]
    return [Kill(victim, chance.uniform(1.5, 5.0), chance.uniform(0.2, 2.5)) for victim in order[:kills]]
