"""A tool that exhausts a resource that the kernel counts by user, and its neighbour."""

from concurrent.futures import ThreadPoolExecutor

from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import ACTING, ATTACKER

__all__ = ["KIND"]

_TAKES_S = 4


def _beside(target: Target, mode: str) -> str:
    """One tool takes and keeps the resource, another takes it a moment later."""
    with ThreadPoolExecutor(1) as callers:
        first = callers.submit(target.call, ATTACKER, {"mode": mode, "seconds": _TAKES_S})
        target.call(ATTACKER, {"mode": "sleep", "seconds": 1})
        second = target.call(ACTING, {"mode": mode, "seconds": 0})
        taken, left = first.result(), second
    told = f"{answered(taken, {200, 502})}, {answered(left, {200, 502})}"
    had, got = taken.json()["result"], left.json()["result"]
    expect(not had or got, f"one tool had {had}, another got {got}")
    return f"{told}: one had {had}, the other {got}"


def inotify(target: Target) -> str:
    return _beside(target, "inotify")


def queues(target: Target) -> str:
    return _beside(target, "queues")


KIND = Kind(
    "neighbours",
    (
        Attack("inotify", "a tool takes all inotify instances of its user, another asks for one", inotify),
        Attack("queues", "the same with POSIX message queues", queues),
    ),
)
