"""The conformance checks of runtimes.

A test runs them over the registry.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.runtime import AnyRuntime, Mortal, Running, ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ToolSource

Params = dict[str, JsonValue]
_LONG_S = 30.0
_SHORT_S = (0.3, 3.0, 30.0)
"""On a busy machine a process may not have begun within the first."""


class ConformanceFailure(AssertionError):
    """A runtime violates the protocol."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A runtime and tools to check it with. None: this kind of source cannot behave so, and the check does not apply."""

    runtime: AnyRuntime
    tool: ToolManifest
    source: ToolSource
    absent: ToolSource
    """A source without a tool behind it."""
    output_dir: Path
    answers: tuple[Params, Callable[[JsonValue], bool]]
    """Parameters, and the test of their answer."""
    refuses: Params | None
    """Parameters that the tool itself rejects."""
    fails: Params | None = None
    """The tool answers that it failed."""
    garbles: Params | None = None
    """The tool's answer is not JSON."""
    hangs: Params | None = None
    """The tool does not answer."""
    call_id_of: tuple[Params, Callable[[JsonValue], JsonValue]] | None = None
    """Parameters that make the tool return its call id, and how to read it from the answer."""
    began: Callable[[], Awaitable[None]] | None = None
    """Returns once the tool has received the request that hangs."""
    hung_up: Callable[[], Awaitable[None]] | None = None
    """Returns once the tool has noticed that its connection was closed."""
    told: list[str] = field(default_factory=list[str])


async def check_runtime(subject: Subject) -> dict[str, bool]:
    """Run all checks. Returns by name whether each applied. Raises ConformanceFailure at the first violation."""
    return {name: await check(subject) for name, check in CHECKS.items()}


@asynccontextmanager
async def _up(subject: Subject) -> AsyncGenerator[Running, None]:
    running = await subject.runtime.start(subject.tool, subject.source, subject.told.append)
    try:
        yield running
    finally:
        await subject.runtime.stop(running)


def _request(subject: Subject, params: Params, timeout_s: float = _LONG_S) -> ToolRequest:
    return ToolRequest("call-conformance", params, timeout_s, subject.output_dir)


async def _failure_of(subject: Subject, request: ToolRequest) -> CallFailed:
    async with _up(subject) as running:
        try:
            output = await subject.runtime.call(running, subject.source, request)
        except CallFailed as failure:
            return failure
    raise ConformanceFailure(f"The call should have failed but gave {output!r}.")


async def _output_of(subject: Subject, params: Params) -> JsonValue:
    async with _up(subject) as running:
        return await subject.runtime.call(running, subject.source, _request(subject, params))


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise ConformanceFailure(what)


async def _starts_and_stops(subject: Subject) -> bool:
    async with _up(subject) as running:
        _must(bool(subject.told), "Starting must tell of its progress.")
        _must(await subject.runtime.is_alive(running), "What was started must be alive.")
        _must(await subject.runtime.is_idle(running, subject.source), "A tool without open calls must be idle.")
        await subject.runtime.stop(running)
    return True


async def _leaves_nothing(subject: Subject) -> bool:
    if not isinstance(subject.runtime, Mortal):
        return False
    async with _up(subject) as running:
        _must(running.pid is not None, "What can end must have a process.")
        ended = asyncio.create_task(subject.runtime.ended(running))
    async with asyncio.timeout(_LONG_S):
        _must(bool(await ended), "How it ended must be said.")
    _must(not await subject.runtime.is_alive(running), "What was stopped must not be alive.")
    return True


async def _answers(subject: Subject) -> bool:
    params, is_right = subject.answers
    output = await _output_of(subject, params)
    _must(is_right(output), f"The answer is wrong: {output!r}.")
    return True


async def _tells_the_call_id(subject: Subject) -> bool:
    if subject.call_id_of is None:
        return False
    params, find = subject.call_id_of
    output = await _output_of(subject, params)
    _must(find(output) == "call-conformance", f"The tool must be told the call id, but got {output!r}.")
    return True


async def _sends_nothing_to_what_is_absent(subject: Subject) -> bool:
    try:
        running = await subject.runtime.start(subject.tool, subject.absent, subject.told.append)
        await subject.runtime.call(running, subject.absent, _request(subject, subject.answers[0]))
    except NotSent:
        return True
    raise ConformanceFailure("What is not there must be NotSent.")


async def _knows_bad_parameters(subject: Subject) -> bool:
    return await _fails_with(subject, subject.refuses, ErrorType.VALIDATION_ERROR)


async def _knows_a_failure(subject: Subject) -> bool:
    return await _fails_with(subject, subject.fails, ErrorType.EXECUTION_ERROR)


async def _knows_garbage(subject: Subject) -> bool:
    return await _fails_with(subject, subject.garbles, ErrorType.OUTPUT_VALIDATION_ERROR)


async def _fails_with(subject: Subject, params: Params | None, expected: ErrorType) -> bool:
    if params is None:
        return False
    failure = await _failure_of(subject, _request(subject, params))
    _must(
        (failure.error_type, failure.outcome) == (expected, "failed"), f"Expected {expected}, got {failure.error_type} ({failure.outcome})."
    )
    return True


async def _does_not_wait_for_ever(subject: Subject) -> bool:
    if subject.hangs is None:
        return False
    async with _up(subject) as running:
        for short_s in _SHORT_S:
            try:
                await subject.runtime.call(running, subject.source, _request(subject, subject.hangs, short_s))
            except CallFailed as failure:
                _must((failure.error_type, failure.outcome) == (ErrorType.TIMEOUT, "unknown"), f"Expected a time-out, got {failure!r}.")
            else:
                raise ConformanceFailure("A tool that hangs must not answer.")
            if subject.began is None or subject.hung_up is None:
                break
            try:
                await asyncio.wait_for(subject.began(), short_s)
            except TimeoutError:
                continue
            await subject.hung_up()
            break
        else:
            raise ConformanceFailure("The tool has not begun to hang.")
    return True


async def _hangs_up_when_cancelled(subject: Subject) -> bool:
    if subject.hangs is None or subject.began is None or subject.hung_up is None:
        return False
    async with _up(subject) as running:
        call = asyncio.ensure_future(subject.runtime.call(running, subject.source, _request(subject, subject.hangs)))
        try:
            await subject.began()
        finally:
            call.cancel()
            await asyncio.wait([call])
        _must(call.cancelled(), "A cancelled call must end as cancelled.")
        await subject.hung_up()
    return True


CHECKS: Mapping[str, Callable[[Subject], Awaitable[bool]]] = {
    "it starts, is alive and idle, and stops twice": _starts_and_stops,
    "it leaves no process and says how it ended": _leaves_nothing,
    "it answers": _answers,
    "it tells the tool the call id": _tells_the_call_id,
    "what is absent is not sent to": _sends_nothing_to_what_is_absent,
    "bad parameters are a validation error": _knows_bad_parameters,
    "a failure is an execution error with a known outcome": _knows_a_failure,
    "an answer that is no JSON is an output error": _knows_garbage,
    "a time-out has an unknown outcome and closes the connection": _does_not_wait_for_ever,
    "cancelling closes the connection": _hangs_up_when_cancelled,
}
