"""Slow calls in a lane: what they take themselves, and what others take beside them."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Thread

from bench.generator import Generator
from bench.load import Job
from bench.results import Single
from bench.rounds import Measurements, Plan, Target, measure
from bench.service import ACTING, LANE_WAY, LANES_ALL, LANES_OFF, OurService, call_body, make_catalog

_MOVED_S, _SLOW_S = 0.3, 4.0
_QUICK = 20
"""So many quick calls of a tool, and its next ones take the lane whatever they were before."""

_ONE_BY_ONE = 3
"""The third is the last that a lane takes: with more than two slow ones among its last twenty calls a tool counts as slow."""

_AT_ONCE = 16
_BESIDE = 8


class Slow:
    """A slow call in the lane of the service, which begins at once and is waited for."""

    def __init__(self, generator: Generator, service: OurService) -> None:
        self._generator, self._service = generator, service
        self._call: Thread | None = None

    def begin(self) -> None:
        self.end()
        quick_calls(self._generator, self._service)
        self._call = Thread(target=self._service.call, args=(ACTING,), kwargs={"message": "hello", "seconds": _SLOW_S})
        self._call.start()

    def end(self) -> None:
        if self._call is not None:
            self._call.join()
            self._call = None


def measure_slow_calls(generator: Generator, folder: Path, plan: Plan) -> tuple[Measurements, list[Single]]:
    """Rows `moved.off` and `moved.all`, calls of 300 ms; `beside.alone` and `beside.slow`, echo without and beside a call of 4 s.

    `moved.share` says how many of the slow calls have been in the lane and were moved.
    """
    data = make_catalog(folder / "slow-data")
    with ExitStack() as stack:
        services = {way: OurService(folder / f"slow-{way}", data, lanes) for way, lanes in (("off", LANES_OFF), ("all", LANES_ALL))}
        for service in services.values():
            stack.callback(service.stop)
            service.start_tool(ACTING)
        made = Measurements()
        targets = [_moved(generator, way, service) for way, service in services.items()]
        for callers, calls in ((1, _ONE_BY_ONE), (_AT_ONCE, _AT_ONCE)):
            made.add(measure(generator, targets, replace(plan, callers=(callers,), calls=calls)))
        share = services["all"].lane_figures().moved / (plan.rounds * (_ONE_BY_ONE + _AT_ONCE))
        slow = Slow(generator, services["all"])
        stack.callback(slow.end)
        beside = replace(plan, callers=(_BESIDE,), seconds=min(plan.seconds, _SLOW_S - 1), calls=None)
        made.add(measure(generator, _beside(services["all"], slow), beside))
        return made, [Single(name="moved.share", label="of the calls of 300 ms with lanes, moved", value=100 * share, unit="%")]


def quick_calls(generator: Generator, service: OurService) -> None:
    generator.run(Job(url=f"{service.url}/run_tool", body=call_body(ACTING), expect='"success"', calls=_QUICK))


def _moved(generator: Generator, way: str, service: OurService) -> Target:
    label = {"off": "ours, without lanes", "all": "ours, acting calls in lanes too"}[way]
    return Target(
        f"moved.{way}",
        f"{label}: HTTP tool with side effects of {_MOVED_S:g} s",
        f"{service.url}/run_tool",
        call_body(ACTING, seconds=_MOVED_S),
        {"our Python": service.parts()["python"], "Temporal": service.parts()["temporal"]},
        '"success"',
        before=lambda: quick_calls(generator, service),
    )


def _beside(service: OurService, slow: Slow) -> Sequence[Target]:
    parts = {"our Python": service.parts()["python"], "Temporal": service.parts()["temporal"]}
    alone = Target(
        "beside.alone", "ours: echo", f"{service.url}/run_tool", call_body("echo"), parts, '"success"', LANE_WAY, before=slow.end
    )
    label = f"ours: echo beside a call of {_SLOW_S:g} s in its lane"
    return [alone, replace(alone, name="beside.slow", label=label, before=slow.begin)]
