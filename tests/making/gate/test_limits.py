"""Questions that a candidate is not asked, and the end of a check when its time is over."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from engine.making.gate.checks import bad_input, derived_cases, health, starts
from engine.making.gate.derivation import Cases, Derivation
from engine.making.gate.judging import IN_TIME, judge
from engine.making.gate.replies import failed
from engine.making.gate.subject import Came, GateLimits, Params, Reply, Subject
from engine.runtimes.failures import NotSent, StartFailed
from tests.making.gate.test_checks import Candidate, entry
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import SideEffectScope, ToolExample, ToolManifest
from toolagent.contracts.sources import RemoteSource

UNWRITABLE = NotSent(ErrorType.VALIDATION_ERROR, "The parameter 'x' may have visible ASCII characters only.")
KEYLESS = NotSent(ErrorType.DEPENDENCY_ERROR, "The secret 'X_API_KEY' of the remote tool is not set.", {"secret": "X_API_KEY"})
REMOTE = entry(RemoteSource(remote_url="https://example.test", remote_api_key="secret:X_API_KEY"), scope=SideEffectScope.NONE)


class Known(Derivation):
    """Cases that need no derivation."""

    def begin(self, manifests: Iterable[ToolManifest]) -> None:
        """Does nothing."""

    async def of(self, manifest: ToolManifest) -> Cases:  # noqa: ARG002 - the same for all
        return await asyncio.sleep(0, tuple({"numbers": [number], "operation": "sum"} for number in range(5)))


async def _for_ever() -> None:
    await asyncio.Event().wait()


@dataclass
class Waiting(Candidate):
    """A candidate that runs `do` at each call."""

    do: Callable[[], Awaitable[None]] = _for_ever

    async def send(self, tool_id: str, content: Params | bytes) -> Reply:
        await self.do()
        return await super().send(tool_id, content)


@pytest.fixture
def subject(tmp_path: Path) -> Callable[..., Subject]:
    def make(candidate: Candidate, judged: ToolEntry = entry(), *, written_by_us: bool = False, **limits: float) -> Subject:  # noqa: B008 - it is frozen
        return Subject((judged,), candidate, Known(tmp_path), written_by_us=written_by_us, limits=GateLimits(**limits))  # pyright: ignore[reportArgumentType]

    return make


Make = Callable[..., Subject]


def test_what_our_client_does_not_write_is_told_from_what_cannot_be_asked() -> None:
    assert failed(UNWRITABLE).came is Came.UNSENDABLE
    assert failed(KEYLESS).came is Came.KEYLESS
    assert failed(StartFailed(ErrorType.VALIDATION_ERROR, "The docker source names no image.")).came is Came.NOT_SENT


async def test_what_our_client_does_not_write_is_no_fault_of_the_tool(subject: Make) -> None:
    replies = iter([failed(UNWRITABLE), failed(UNWRITABLE)])
    candidate = Candidate(lambda _tool, _content: next(replies, Reply(Came.ANSWER)))
    result = await derived_cases.check(subject(candidate))
    assert (result.passed, result.details) == (True, f"{len(candidate.sent) - 2} cases were tried.")
    result = await derived_cases.check(subject(Candidate(lambda _tool, _content: failed(UNWRITABLE))))
    assert (result.passed, result.applies) == (True, False)


async def test_a_server_that_wants_a_key_that_is_not_set_is_given_no_made_up_input(subject: Make) -> None:
    candidate = Candidate(lambda _tool, _content: failed(KEYLESS))
    results = [await check(replace(subject(candidate, REMOTE), probe="full")) for check in (derived_cases.check, bad_input.check)]
    assert [(result.passed, result.applies) for result in results] == [(True, False), (True, False)]
    assert "X_API_KEY" in results[0].details


async def test_what_hangs_on_bad_input_is_seen_after_three(subject: Make) -> None:
    candidate = Candidate(lambda _tool, _content: Reply(Came.SILENCE, message="It did not answer within 30 s."))
    result = await bad_input.check(subject(candidate, written_by_us=True))
    assert (result.passed, len(candidate.sent)) == (False, 3)


@pytest.mark.parametrize("check", [derived_cases.check, bad_input.check])
async def test_what_takes_all_of_the_time_fails_and_what_somebody_else_had_no_time_for_is_raised(
    subject: Make, check: Callable[[Subject], Awaitable[CheckResult]]
) -> None:
    result = await check(subject(Waiting(), cases_s=0.05, written_by_us=True))
    assert "took all of 0.05 s" in result.details
    assert not result.passed

    async def away() -> None:
        raise TimeoutError("The engine did not answer.")

    with pytest.raises(TimeoutError, match="engine"):
        await check(subject(Waiting(do=away)))


async def test_a_judgement_that_takes_too_long_ends_as_a_failure(subject: Make) -> None:
    judgement = await judge(subject(Waiting(statuses={"/health": 200}), whole_s=0.05))
    assert [check.check for check in judgement.checks if not check.passed] == [IN_TIME]
    assert judgement.checks[0].check == starts.NAME


def reading(count: int) -> tuple[ToolEntry, ...]:
    source = RemoteSource(remote_url="https://example.test", http_method="GET")
    return tuple(entry(source, tool_id=f"tool_{number}", scope=SideEffectScope.NONE) for number in range(count))


async def test_a_server_of_others_is_asked_a_bounded_number_of_times_however_many_tools_it_has(tmp_path: Path) -> None:
    for count in (1, 30, 100):
        candidate = Candidate(statuses={"/health": 200})
        whole = Subject(reading(count), candidate, Known(tmp_path))
        for check in (health.check, derived_cases.check, bad_input.check):
            await check(whole)
        assert len(candidate.sent) <= 140
        assert {tool for tool, _ in candidate.sent} == {one.manifest.tool_id for one in whole.entries}


async def test_what_a_server_of_others_says_to_one_made_up_request_is_only_told(tmp_path: Path) -> None:
    def failing(_tool: str, _content: Params | bytes) -> Reply:
        return Reply(Came.ERROR, message="It answered with status 500.")

    few = await derived_cases.check(Subject(reading(100), Candidate(failing), Known(tmp_path)))
    assert (few.passed, "status 500" in few.details) == (True, True)
    more = await derived_cases.check(Subject(reading(20), Candidate(failing), Known(tmp_path)))
    assert (more.passed, len(more.faults)) == (False, 20)


async def test_examples_come_on_top_of_the_few_cases_of_a_server_of_others(tmp_path: Path) -> None:
    wrong, fits, other = (ToolExample(input={"numbers": [one], "operation": "mean"}) for one in ("7", 7, 8))
    first, *rest = reading(100)
    first = first.model_copy(update={"manifest": first.manifest.model_copy(update={"examples": (wrong, fits, other)})})
    candidate = Candidate()
    await derived_cases.check(Subject((first, *rest), candidate, Known(tmp_path)))
    assert [content for tool_id, content in candidate.sent if tool_id == "tool_0"] == [fits.input, {"numbers": [0], "operation": "sum"}]


async def test_a_server_that_does_not_answer_is_told_of_once_and_keeps_all_its_tools_out(tmp_path: Path) -> None:
    result = await health.check(Subject(reading(50), Candidate(), Known(tmp_path)))
    assert (result.passed, len(result.faults), result.details.count("https://example.test")) == (False, 50, 1)
    assert "server_url" in result.details


@pytest.mark.parametrize(("probe", "asked"), [("none", ()), ("safe", ("reads",)), ("full", ("reads", "writes", "shows"))])
async def test_made_up_input_for_servers_of_others_is_what_the_task_allows(
    tmp_path: Path, probe: Literal["none", "safe", "full"], asked: tuple[str, ...]
) -> None:
    reads = RemoteSource(remote_url="https://example.test", http_method="GET")
    entries = (
        entry(reads, tool_id="reads", scope=SideEffectScope.NONE),
        entry(RemoteSource(remote_url="https://example.test"), tool_id="writes"),
        entry(reads.model_copy(update={"remote_api_key": "secret:KEY"}), tool_id="shows", scope=SideEffectScope.NONE),
    )
    candidate = Candidate()
    for check in (derived_cases.check, bad_input.check):
        await check(Subject(entries, candidate, Known(tmp_path), probe=probe))
    assert {tool for tool, _ in candidate.sent} == set(asked)
