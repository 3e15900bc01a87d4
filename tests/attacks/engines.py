"""The Docker engine goes away in the middle of its work for us, and comes back."""

import secrets
import signal
import time
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from engine.runtimes.docker_engine.serving_containers import TMP
from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import docker_tools
from tests.attacks.own_engine import OwnEngine, own_engine
from tests.attacks.peer import Peer
from tests.docker.engines import ready_engine
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_TYPED = {200, 502, 503, 504}
_SAYS_S, _ENDS_S, _HEALS_S = 10.0, 20.0, 40.0
_FOLDER = "engine"


@contextmanager
def _on_an_engine_of_its_own(folder: Path, _peer: Peer) -> Generator[Mapping[str, str]]:
    ready_engine()
    with own_engine(folder / _FOLDER) as engine, pytest.MonkeyPatch.context() as environment:
        environment.setenv("DOCKER_HOST", engine.address)
        yield {}


def killed(target: Target) -> str:
    """Its containers, and calls to them, go on without it."""
    return _away_in_a_call(target, signal.SIGKILL)


def ended(target: Target) -> str:
    """Its containers end with it."""
    return _away_in_a_call(target, signal.SIGTERM)


def killed_in_a_build(target: Target) -> str:
    """It goes away during an image build."""
    engine = _engine_of(target)
    with _tools(target, 1, f"RUN sleep 8 # {secrets.token_hex(4)}\n") as (tool,), ThreadPoolExecutor(1) as caller:
        building = caller.submit(target.call, tool)
        time.sleep(3.0)
        expect(not building.done(), "it was built before the engine was killed")
        with _away(target, engine, signal.SIGKILL):
            told = [_in_time(building, {503})]
        told.append(_well_again(target, tool))
    return ", ".join(told)


def _away_in_a_call(target: Target, how: signal.Signals) -> str:
    """The call ends with an error, others fail at once with `no engine`, and the service recovers by itself."""
    engine = _engine_of(target)
    with _tools(target, 2) as (tool, other), ThreadPoolExecutor(1) as caller:
        answered(target.call(tool), {200})
        running = caller.submit(target.call, tool, {"mode": "slow", "until": "go-on"})
        begun = f"{TMP}/hanging"
        wait_until(lambda: target.call(tool, {"mode": "read", "paths": [begun]}).json()["result"] == {begun: "done"}, "it has begun")
        with _away(target, engine, how):
            began = time.monotonic()
            told = [answered(target.call(other), {503})]
            expect(time.monotonic() - began < _SAYS_S, "the caller of another tool had to wait for that")
            answered(target.call(tool, {"mode": "write", "paths": ["go-on"]}), _TYPED)
            told.append(_in_time(running, _TYPED))
        told += [_well_again(target, tool), _well_again(target, other)]
    return ", ".join(told)


@contextmanager
def _away(target: Target, engine: OwnEngine, how: signal.Signals) -> Generator[None]:
    """The engine is away during the block; `/health` reports it and stays well."""
    engine.send(how)
    try:
        wait_until(lambda: _said_of_docker(target) != "ok", "/health says that there is no engine", _SAYS_S)
        yield
    finally:
        engine.start()
    wait_until(lambda: _said_of_docker(target) == "ok", "/health says that it is back", _SAYS_S)


def _said_of_docker(target: Target) -> str:
    health = target.ask("GET", "/health")
    expect(health.is_success, f"/health is not well: {health.text[:200]}")
    return str(health.json()["checks"]["docker"])


def _in_time(call: Future[httpx.Response], allowed: set[int]) -> str:
    try:
        return answered(call.result(_ENDS_S), allowed)
    except TimeoutError:
        raise AssertionError(f"the call does not end within {_ENDS_S:g} s") from None


def _well_again(target: Target, tool: str) -> str:
    """Call until it succeeds; errors until then are typed, too."""
    answers: list[str] = []

    def succeeds() -> bool:
        answers.append(answered(target.call(tool), _TYPED))
        return answers[-1] == "200"

    wait_until(succeeds, f"{tool} can be called again", _HEALS_S)
    return f"{answers[-1]} after {len(answers) - 1}"


@contextmanager
def _tools(target: Target, number: int, dockerfile: str = "") -> Generator[tuple[str, ...]]:
    """New tools; their containers end with the engine."""
    tools = tuple(f"attack:engine-{secrets.token_hex(4)}" for _ in range(number))
    with docker_tools(target.data, {tool: {} for tool in tools}, dockerfile):
        for tool in tools:
            wait_until(lambda tool=tool: target.ask("GET", f"/tools/{tool}").is_success, f"{tool} is known")
        yield tools


def _engine_of(target: Target) -> OwnEngine:
    return OwnEngine(target.data.parent.parent / _FOLDER)


KIND = Kind(
    "engines",
    (
        Attack("ended", "SIGTERM to the Docker engine in the middle of a call", ended, is_load=True, in_ci=False, has_middle=False),
        Attack("killed", "SIGKILL to it in the middle of a call", killed, is_load=True, in_ci=False, has_middle=False),
        Attack(
            "killed-in-a-build", "SIGKILL to it while an image is built", killed_in_a_build, is_load=True, in_ci=False, has_middle=False
        ),
    ),
    around=_on_an_engine_of_its_own,
)
