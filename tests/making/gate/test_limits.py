"""What a candidate is not asked, and what ends when the time is over."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.making.gate import bad_input, derived_cases, starts
from engine.making.gate.derivation import Cases, Derivation
from engine.making.gate.judging import IN_TIME, judge
from engine.making.gate.replies import failed
from engine.making.gate.subject import Came, GateLimits, Params, Reply, Subject
from engine.runtimes.failures import NotSent, StartFailed
from tests.making.gate.test_checks import Candidate, entry
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import RemoteSource

UNWRITABLE = NotSent(ErrorType.VALIDATION_ERROR, "The parameter 'x' may have visible ASCII characters only.")
KEYLESS = NotSent(ErrorType.DEPENDENCY_ERROR, "The secret 'X_API_KEY' of the remote tool is not set.", {"secret": "X_API_KEY"})
REMOTE = entry(RemoteSource(remote_url="https://example.test", remote_api_key="secret:X_API_KEY"), scope=SideEffectScope.NONE)


class Known(Derivation):
    """Cases that nobody has to derive."""

    def begin(self, manifests: Iterable[ToolManifest]) -> None:
        """There is nothing to do."""

    async def of(self, manifest: ToolManifest) -> Cases:  # noqa: ARG002 - the same for all
        return await asyncio.sleep(0, tuple({"numbers": [number], "operation": "sum"} for number in range(5)))


async def _for_ever() -> None:
    await asyncio.Event().wait()


@dataclass
class Waiting(Candidate):
    """Does what it is told to, each time it is called."""

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
