"""The conformance suite of providers of models.

A test runs it for each registered provider.

The endpoint plays one conversation for each situation, chosen by the first message, which is the situation's name.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.roles.provider import BusyKind, ModelBusy, ModelFailure, ModelProvider, ModelRefused, RefusedKind
from engine.roles.provider_options import ProviderOptions
from toolagent_service.contracts.model import Message, ModelRequest, ModelTurn, Text, ToolOffer, ToolOutcome, ToolUse

MODEL = "scripted-model"
"""The only model of the endpoint."""

RETRY_AFTER_S = 7.5
"""The wait that the endpoint asks for when it is `RATE_LIMITED`."""

_OFFER = ToolOffer(
    name="read_file",
    description="Reads a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
_LONG_S = 20.0


class Situation(StrEnum):
    """What the endpoint does."""

    TALKS = "it says: Grüß Gott, 世界"
    USES = "it thinks, says something and uses read_file twice, with path main.py and path 测试.py; then it says: done"
    SLOW = "it takes half a second to answer"
    SILENT = "it sends nothing for ten seconds"
    RATE_LIMITED = "it has had too many requests"
    OVERLOADED = "it has more to do than it can"
    BROKEN = "it fails"
    CUT = "it breaks the connection in the middle of an answer"
    ENDED_EARLY = "it ends the stream before the answer ends"
    MALFORMED = "it sends what is no JSON"
    FAILS_LATE = "it says in the middle of an answer that it is overloaded"
    FORBIDDEN = "it does not let this key do that"
    INVALID = "it does not understand the request"


class ConformanceFailure(AssertionError):
    """A provider breaks the protocol."""


@dataclass(frozen=True, slots=True)
class Subject:
    """How to make the provider, an endpoint and its key, the URL of an `absent` endpoint, and how often a situation was `asked` for."""

    make: Callable[[ProviderOptions], ModelProvider]
    endpoint: str
    key: str
    absent: str
    asked: Callable[[Situation], int]


def _options(subject: Subject, **changes: str | float | None) -> ProviderOptions:
    return replace(ProviderOptions(MODEL, subject.key, subject.endpoint), **changes)


def _request(situation: Situation, *more: Message) -> ModelRequest:
    first = Message(role="user", content=(Text(text=situation.value),))
    return ModelRequest(system="You are tried out.", messages=(first, *more), tools=(_OFFER,), max_tokens=1_000)


async def _ask(subject: Subject, request: ModelRequest, options: ProviderOptions, beat: Callable[[str], None] | None = None) -> ModelTurn:
    provider = subject.make(options)
    try:
        async with asyncio.timeout(_LONG_S):
            return await provider.ask(request, beat or (lambda _: None))
    finally:
        await provider.aclose()


async def _failure(subject: Subject, situation: Situation, options: ProviderOptions) -> ModelFailure:
    try:
        turn = await _ask(subject, _request(situation), options)
    except ModelFailure as failure:
        for shown in (str(failure), repr(failure), repr(options)):
            _must(subject.key not in shown, f"The key is shown: {shown}")
        return failure
    raise ConformanceFailure(f"{situation.value}: it should have failed, but gave {turn!r}.")


async def _busy(subject: Subject, situation: Situation, kind: BusyKind, **changes: str | float | None) -> ModelBusy:
    failure = await _failure(subject, situation, _options(subject, **changes))
    if isinstance(failure, ModelBusy) and failure.kind is kind:
        return failure
    raise ConformanceFailure(f"{situation.value}: expected {kind}, got {failure!r}.")


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise ConformanceFailure(what)


async def _talks(subject: Subject) -> None:
    turn = await _ask(subject, _request(Situation.TALKS), _options(subject))
    _must(turn.content == (Text(text="Grüß Gott, 世界"),), f"Another text came: {turn.content!r}.")
    _must((turn.model, turn.stop_reason, turn.cost_usd) == (MODEL, "end_turn", None), f"The turn is not told as it was: {turn!r}.")
    _must(turn.usage.read > 0 and turn.usage.output_tokens > 0, f"Tokens must be counted: {turn.usage!r}.")


async def _uses(subject: Subject) -> None:
    first = await _ask(subject, _request(Situation.USES), _options(subject))
    uses = [block for block in first.content if isinstance(block, ToolUse)]
    _must([(use.name, use.input) for use in uses] == [("read_file", {"path": "main.py"}), ("read_file", {"path": "测试.py"})], f"{uses!r}")
    _must(len({use.id for use in uses}) == 2 and first.stop_reason == "tool_use", "Each use must have an id of its own.")
    outcomes = tuple(ToolOutcome(tool_use_id=use.id, content="x = 1", is_error=use is uses[1]) for use in uses)
    more = (Message(role="assistant", content=first.content), Message(role="user", content=outcomes))
    second = await _ask(subject, _request(Situation.USES, *more), _options(subject))
    _must(second.content == (Text(text="done"),), f"The conversation did not go on: {second.content!r}.")
    _must(second.usage.cache_read_tokens > 0, "What was asked before must be read from the cache.")


async def _tells_of_progress(subject: Subject) -> None:
    told: list[str] = []
    await _ask(subject, _request(Situation.SLOW), _options(subject, beat_s=0.05), told.append)
    _must(len(told) > 2 and all(told), f"Progress must be told while the answer comes, but there was {told!r}.")
    count = len(told)
    await asyncio.sleep(0)
    _must(len(told) == count, "Nothing must be told afterwards.")


async def _knows_what_is_busy(subject: Subject) -> None:
    expected = {
        Situation.RATE_LIMITED: BusyKind.RATE_LIMIT,
        Situation.OVERLOADED: BusyKind.OVERLOADED,
        Situation.BROKEN: BusyKind.SERVER,
        Situation.CUT: BusyKind.CUT,
        Situation.ENDED_EARLY: BusyKind.CUT,
        Situation.MALFORMED: BusyKind.MALFORMED,
        Situation.FAILS_LATE: BusyKind.OVERLOADED,
    }
    for situation, kind in expected.items():
        await _busy(subject, situation, kind)
        _must(subject.asked(situation) == 1, f"{situation.value}: it must be asked once, others try again.")


async def _hears_how_long_to_wait(subject: Subject) -> None:
    busy = await _busy(subject, Situation.RATE_LIMITED, BusyKind.RATE_LIMIT)
    _must(busy.retry_after_s == RETRY_AFTER_S, f"The wait that the server asks for is lost: {busy!r}.")


async def _knows_what_is_paid_for_all_the_same(subject: Subject) -> None:
    busy = await _busy(subject, Situation.CUT, BusyKind.CUT)
    _must(busy.usage is not None and busy.usage.read > 0, f"Tokens are lost: {busy!r}.")


async def _does_not_wait_for_ever(subject: Subject) -> None:
    await _busy(subject, Situation.SILENT, BusyKind.TIMEOUT, silence_s=0.2)


async def _knows_what_is_not_there(subject: Subject) -> None:
    await _busy(subject, Situation.TALKS, BusyKind.CONNECTION, base_url=subject.absent)


async def _knows_what_is_refused(subject: Subject) -> None:
    talks = Situation.TALKS
    expected: list[tuple[Situation, RefusedKind, str, dict[str, str | float | None]]] = [
        (talks, RefusedKind.NO_KEY, "_API_KEY", {"api_key": None, "base_url": None}),
        (talks, RefusedKind.UNAUTHENTICATED, "_API_KEY", {"api_key": f"not-{subject.key[::-1]}"}),
        (talks, RefusedKind.NOT_FOUND, "", {"model": "no-such-model"}),
        (talks, RefusedKind.NOT_FOUND, "_BASE_URL", {"base_url": f"{subject.endpoint}/nowhere"}),
        (Situation.FORBIDDEN, RefusedKind.FORBIDDEN, "", {}),
        (Situation.INVALID, RefusedKind.BAD_REQUEST, "", {}),
    ]
    for situation, kind, ending, changes in expected:
        setting = f"TOOL_AGENT_MODEL{ending}"
        failure = await _failure(subject, situation, _options(subject, **changes))
        _must(isinstance(failure, ModelRefused) and failure.kind is kind, f"Expected {kind}, got {failure!r}.")
        _must(setting in failure.message, f"{kind}: it must name {setting}, but says {failure.message!r}.")


async def _stops_when_cancelled(subject: Subject) -> None:
    begun = asyncio.Event()
    asking = asyncio.create_task(_ask(subject, _request(Situation.SILENT), _options(subject), lambda _: begun.set()))
    async with asyncio.timeout(_LONG_S):
        await begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
    _must(asking.cancelled(), "A cancelled turn must end as cancelled.")


CHECKS: Mapping[str, Callable[[Subject], Awaitable[None]]] = {
    "it gives what is said, by whom and at what cost in tokens": _talks,
    "it gives uses of tools, takes their outcomes, and caches": _uses,
    "it tells of its progress while the answer comes": _tells_of_progress,
    "what may work later is busy, and asked for once": _knows_what_is_busy,
    "it passes on how long to wait": _hears_how_long_to_wait,
    "it counts what is paid for without an answer": _knows_what_is_paid_for_all_the_same,
    "it does not wait for ever": _does_not_wait_for_ever,
    "an endpoint that is not there may come": _knows_what_is_not_there,
    "what will not work is refused, with a remedy": _knows_what_is_refused,
    "it stops when it is cancelled": _stops_when_cancelled,
}
