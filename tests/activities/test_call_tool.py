"""Making a call: its requests, their number, and its result; with a real HTTP server and a real database."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.call_tool import CallTool
from engine.calling import exchange
from engine.calling.attempt import MAX_SENDS, MAX_TRIES
from engine.calling.intake import Intake
from engine.calling.queued_call import QueuedCall
from engine.calls import large_results
from engine.network.ports import free_port
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Running, ToolRequest
from engine.store.calls import CallTable
from engine.store.database import Database
from tests.calls.parts import PLAN, exchange_of, serving, supervising
from tests.parts import begun_calls, prompt_settlement, tool_registry
from toolagent.client import names
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.references import ResultReference
from toolagent.contracts.sources import RemoteSource
from toolagent.validation.checkers import CheckersBusyError
from toolagent_service import step_names
from toolagent_service.contracts.steps import CallRequest, Finished

SAID = "hunter2hunter2"
SECRET: JsonSchema = {"properties": {"password": {"writeOnly": True}}}
HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"


@dataclass
class Tool:
    """A raw HTTP server that counts its requests, and answers as the test says."""

    url: str = ""
    answer: bytes = b'{"ok":true}'
    status: bytes = b"200 OK"
    requests: list[bytes] = field(default_factory=list[bytes])
    drop: bool = False
    hang: bool = False
    fault: Exception | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        self.reached.set()
        if self.hang:
            while await reader.read(1024):
                continue
            self.left.set()
        elif not self.drop:
            writer.write(HEAD % (self.status, len(self.answer)) + self.answer)
        writer.close()


@pytest_asyncio.fixture
async def tool() -> AsyncGenerator[Tool]:
    made = Tool()
    async with serving(made.serve) as source:
        made.url = source.remote_url
        yield made


Run = Callable[..., Awaitable[Finished]]


class Faulty(RemoteRuntime):
    """A runtime with a bug that shows after the tool was reached."""

    def __init__(self, http: HttpExchange, tool: Tool) -> None:
        super().__init__(http, lambda _name: None)
        self._tool = tool

    async def call(self, running: Running, source: RemoteSource, request: ToolRequest) -> JsonValue:
        answer = await super().call(running, source, request)
        if self._tool.fault is not None:
            raise self._tool.fault
        return answer


@pytest.fixture
def intake() -> Intake:
    return Intake()


@pytest_asyncio.fixture
async def supervisor(database: Database, tool: Tool) -> AsyncGenerator[Supervisor]:
    async with supervising(database, lambda http: Faulty(http, tool)) as made:
        yield made


@pytest.fixture
def run(database: Database, tmp_path: Path, supervisor: Supervisor, intake: Intake) -> Run:
    """Make one attempt at a call of a remote tool with these sources."""
    registry, calls = tool_registry(database), CallTable(database)

    async def attempt(
        *urls: str,
        repeatable: bool = False,
        number: int = 1,
        call_id: str = "call-00000001",
        env: ActivityEnvironment | None = None,
        spent_s: float = 0.0,
        waits: int = 0,
        output: JsonSchema | None = None,
        lost: int = 0,
    ) -> Finished:
        await registry.register(
            ToolManifest(tool_id="t", name="T", idempotent=repeatable, concurrency=1, input_schema=SECRET, output_schema=output or {}),
            tuple(RemoteSource(remote_url=url) for url in urls),
        )
        plan = PLAN.model_copy(update={"call_id": call_id, "params": {"a": 1, "password": SAID}, "repeatable": repeatable})
        env = env or ActivityEnvironment()
        env.info = dataclasses.replace(env.info, attempt=number, heartbeat_details=["", number - 1, spent_s, waits])
        return await env.run(activity.call_tool, CallRequest(plan=plan, lost=lost))

    exchange = exchange_of(database, tmp_path, supervisor, intake, slot_wait_s=0.3)
    settlement = prompt_settlement(registry, calls, database, tmp_path / "steps")
    begun = begun_calls(supervisor, exchange, calls, settlement, intake)
    activity = CallTool(QueuedCall(registry, supervisor, exchange, calls, "h1"), begun, settlement, intake)
    return attempt


def failure(outcome: Finished) -> tuple[ErrorType, JsonValue]:
    error = outcome.error
    assert error is not None
    return error.type, error.details


def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.promise("tools-get-the-key")
async def test_the_tool_gets_the_call_id_as_its_idempotency_key(run: Run, tool: Tool) -> None:
    assert (await run(tool.url)).output == {"ok": True}
    assert b"idempotency-key: call-00000001" in tool.requests[0].lower()


async def test_a_call_that_reaches_a_host_which_drains_is_left_to_others_and_that_is_no_try(run: Run, tool: Tool, intake: Intake) -> None:
    intake.heed("now")
    env, told = ActivityEnvironment(), list[object]()
    env.on_heartbeat = lambda *details: told.append(details)
    with pytest.raises(ApplicationError) as left:
        await run(tool.url, env=env, waits=2)
    assert (left.value.type, left.value.next_retry_delay) == (step_names.ATTEMPT_ENDED, timedelta(seconds=0.1))
    assert told == [("", 0, 0.0, 3)]
    intake.heed(None)
    assert (await run(tool.url)).output == {"ok": True}


@pytest.mark.promise("never-twice")
async def test_a_second_attempt_at_what_may_not_be_repeated_sends_nothing_and_starts_nothing(run: Run, tool: Tool) -> None:
    await run(tool.url)
    found = [failure(one) for one in (await run(tool.url, number=2, waits=1), await run(number=2))]  # the last has nothing to start
    assert (found, len(tool.requests)) == ([(ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})] * 2, 1)


async def test_a_second_attempt_at_what_may_be_repeated_sends_again(run: Run, tool: Tool) -> None:
    await run(tool.url, repeatable=True)
    assert (await run(tool.url, repeatable=True, number=2)).output == {"ok": True}
    assert len(tool.requests) == 2


@pytest.mark.promise("only-connect-errors-are-unsent")
async def test_a_connection_that_never_came_about_counts_as_not_sent(run: Run, tool: Tool) -> None:
    kind, details = failure(await run(nowhere()))
    assert kind is ErrorType.UNAVAILABLE
    assert isinstance(details, dict)
    assert details["sent"] is False
    assert (await run(tool.url, number=2)).output == {"ok": True}


async def test_the_next_source_is_tried_when_nothing_was_sent(run: Run, tool: Tool) -> None:
    outcome = await run(nowhere(), tool.url)
    assert (outcome.output, outcome.active_source) == ({"ok": True}, 1)


@pytest.mark.promise("only-connect-errors-are-unsent")
async def test_the_next_source_is_not_tried_when_something_was_sent(run: Run, tool: Tool) -> None:
    tool.drop = True
    kind, details = failure(await run(tool.url, tool.url))
    assert kind is ErrorType.EXECUTION_ERROR
    assert isinstance(details, dict)
    assert details["outcome"] == "unknown"
    assert len(tool.requests) == 1


@pytest.mark.promise("our-failures-are-retried")
async def test_a_lost_connection_to_a_repeatable_tool_is_left_to_temporal_to_try_again(run: Run, tool: Tool) -> None:
    tool.drop = True
    for number in range(1, MAX_SENDS):
        with pytest.raises(ApplicationError) as lost:
            await run(tool.url, repeatable=True, number=number)
        assert (lost.value.type, lost.value.non_retryable) == (step_names.TOOL_CONNECTION_LOST, False)
    assert failure(await run(tool.url, repeatable=True, number=MAX_SENDS))[0] is ErrorType.EXECUTION_ERROR
    assert len(tool.requests) == MAX_SENDS


async def test_a_secret_parameter_that_the_tool_repeats_in_an_error_is_masked(run: Run, tool: Tool) -> None:
    tool.status, tool.answer = b"500 Internal Server Error", b'{"error":{"type":"x","message":"bad %b"}}' % SAID.encode()
    told = (await run(tool.url)).model_dump_json()
    assert ("bad ***" in told, SAID in told) == (True, False)
    tool.status, tool.answer = b"200 OK", b'{"%b": "none.png"}' % SAID.encode()
    told = (await run(tool.url, call_id="call-00000002", output={"additionalProperties": {"format": "file-path"}})).model_dump_json()
    assert ("$.***" in told, SAID in told) == (True, False)


async def test_faults_of_a_form_that_is_not_ours_are_left_out_and_the_whole_stays_at_fault(run: Run, tool: Tool) -> None:
    tool.status, strange = b"422 Unprocessable Content", b'{"path":["body","x"],"message":"no"},{"path":"$.y","message":5}'
    for faults, kept in ((strange + b',{"path":"$.x","message":"no","keyword":null}', "$.x"), (strange, "$")):
        tool.answer = b'{"error":{"type":"validation_error","message":"no","details":{"errors":[%b]}}}' % faults
        finished = await run(tool.url, call_id=f"call-{kept:0>8}")
        assert [issue.path for issue in finished.validation_errors] == [kept]


async def test_a_stopped_tool_gets_no_second_request_though_it_is_repeatable(run: Run, tool: Tool, supervisor: Supervisor) -> None:
    tool.hang = True
    running = asyncio.ensure_future(run(tool.url, repeatable=True))
    await tool.reached.wait()
    await supervisor.stop("t")
    kind, details = failure(await running)
    assert (kind, details, len(tool.requests)) == (ErrorType.EXECUTION_ERROR, {"outcome": "unknown", "reason": "stopped"}, 1)


async def test_a_refusal_says_that_requests_were_sent_before_it(run: Run, tool: Tool) -> None:
    tool.status = b"429 Too Many Requests"
    kind, details = failure(await run(tool.url))
    assert isinstance(details, dict)
    assert (kind, details["status_code"], "sends" in details) == (ErrorType.EXECUTION_ERROR, 429, False)


async def test_a_refusal_after_a_lost_request_says_so(run: Run, tool: Tool) -> None:
    tool.drop = True
    with pytest.raises(ApplicationError):
        await run(tool.url, repeatable=True)
    tool.drop, tool.status = False, b"429 Too Many Requests"
    _, details = failure(await run(tool.url, repeatable=True, number=2))
    assert isinstance(details, dict)
    assert (details["status_code"], details["sends"]) == (429, 2)


@pytest.mark.promise("calls-end")
async def test_a_tool_that_kills_its_worker_each_time_is_asked_a_bounded_number_of_times_whatever_heartbeats_say(
    run: Run, tool: Tool
) -> None:
    for _ in range(MAX_SENDS):
        await run(tool.url, repeatable=True)  # of which nobody heard: it is made again, by Temporal or on another host
    outcome = await run(tool.url, repeatable=True)
    assert failure(outcome) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert (len(tool.requests), outcome.started_at is not None) == (MAX_SENDS, True)


@pytest.mark.promise("calls-end")
async def test_attempts_that_were_lost_before_the_tool_was_asked_are_bounded_and_waiting_is_none_of_them(run: Run, tool: Tool) -> None:
    kind, details = failure(await run(tool.url, number=MAX_TRIES + 1))
    assert (kind, details, tool.requests) == (ErrorType.EXECUTION_ERROR, {"attempts": MAX_TRIES}, [])
    assert failure(await run(tool.url, lost=MAX_TRIES)) == (kind, details)
    assert (await run(tool.url, number=MAX_TRIES + 1, waits=1)).output == {"ok": True}


@pytest.mark.promise("calls-end")
async def test_what_the_tool_has_had_of_its_time_in_earlier_attempts_is_not_given_again(run: Run, tool: Tool) -> None:
    tool.hang = True
    async with asyncio.timeout(9):  # of 10
        assert failure(await run(tool.url, repeatable=True, number=2, spent_s=9.9))[0] is ErrorType.TIMEOUT
    assert failure(await run(tool.url, repeatable=True, number=3, spent_s=10.01)) == (ErrorType.TIMEOUT, {"timeout_s": 10.0})
    assert len(tool.requests) == 1


@pytest.mark.promise("calls-end")
async def test_an_error_that_nobody_foresaw_is_tried_again_a_bounded_number_of_times_and_then_told(run: Run, tool: Tool) -> None:
    tool.fault = KeyError("Id \ud800")
    for number in range(1, MAX_TRIES):
        with pytest.raises(KeyError):
            await run(tool.url, repeatable=True, number=number)
    outcome = await run(tool.url, repeatable=True, number=MAX_TRIES)
    assert failure(outcome) == (ErrorType.EXECUTION_ERROR, {"attempts": MAX_TRIES, "cause": "KeyError"})
    assert outcome.error is not None
    assert outcome.model_dump_json()
    assert "KeyError: 'Id \\ud800'" in outcome.error.message


async def test_each_heartbeat_says_what_the_next_attempt_must_know(run: Run, tool: Tool) -> None:
    tool.drop, env, heard = True, ActivityEnvironment(), list[tuple[str, int, float, int]]()
    env.on_heartbeat = lambda *said: heard.append(said)
    with pytest.raises(ApplicationError):
        await run(tool.url, repeatable=True, env=env, number=3, spent_s=4.0, waits=1)
    _, sends, spent_s, waits = heard[-1]
    assert (sends, spent_s > 4.0, waits) == (3, True, 1)


@pytest.mark.promise("cancel-closes")
async def test_cancelling_closes_the_connection_and_says_so(run: Run, tool: Tool) -> None:
    tool.hang = True
    env = ActivityEnvironment()
    attempt = asyncio.ensure_future(run(tool.url, env=env))
    await asyncio.wait_for(tool.reached.wait(), 60)
    env.cancel()
    kind, details = failure(await attempt)
    assert (kind, details) == (ErrorType.CANCELLED, {"sent": True, "outcome": "unknown", "tool": "connection_closed"})
    await asyncio.wait_for(tool.left.wait(), 60)


async def test_an_answer_that_grows_beyond_the_limit_when_written_is_refused(run: Run, tool: Tool) -> None:
    tool.answer = b"[" + b",".join([b"1e15"] * 18) + b"]"
    kind, details = failure(await run(tool.url))
    assert (len(tool.answer) < 100, kind) == (True, ErrorType.OUTPUT_VALIDATION_ERROR)
    assert isinstance(details, dict)
    assert details["outcome"] == "executed"


@pytest.mark.parametrize("cause", ["paused", "reset", "timed_out", "worker_shutdown"])
async def test_an_attempt_that_is_ended_from_outside_is_no_cancelled_call(run: Run, tool: Tool, cause: str) -> None:
    tool.hang = True
    env = ActivityEnvironment()
    attempt = asyncio.ensure_future(run(tool.url, env=env))
    await asyncio.wait_for(tool.reached.wait(), 60)
    env.cancel(ActivityCancellationDetails(**{cause: True}))
    with pytest.raises(ApplicationError) as ended:
        await attempt
    assert (ended.value.type, ended.value.non_retryable) == (step_names.ATTEMPT_ENDED, False)


async def test_a_call_that_gets_no_slot_in_time_is_left_to_temporal_to_try_again(run: Run, tool: Tool) -> None:
    tool.hang = True
    env = ActivityEnvironment()
    holding = asyncio.ensure_future(run(tool.url, env=env))
    await asyncio.wait_for(tool.reached.wait(), 60)
    second, heard = ActivityEnvironment(), list[tuple[str, int, float, int]]()
    second.on_heartbeat = lambda *said: heard.append(said)
    with pytest.raises(ApplicationError) as waiting:
        await run(tool.url, call_id="call-00000002", env=second)
    assert (waiting.value.type, waiting.value.non_retryable) == (names.NO_SLOT, False)
    assert heard[-1][-1] == 1, "An attempt that only waited is none that was tried."
    env.cancel()
    await holding
    assert len(tool.requests) == 1


LARGE = b'"' + b"x" * 60 + b'"'


async def test_a_large_answer_is_a_reference(run: Run, tool: Tool) -> None:
    tool.answer = LARGE
    outcome = await run(tool.url)
    assert outcome.is_reference
    assert ResultReference.model_validate(outcome.output).size == len(LARGE)


@pytest.mark.parametrize(("repeatable", "kind"), [(True, ErrorType.UNAVAILABLE), (False, ErrorType.EXECUTION_ERROR)])
async def test_an_answer_that_cannot_be_kept_says_that_the_tool_has_run(
    run: Run, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeatable: bool, kind: ErrorType
) -> None:
    monkeypatch.setattr(exchange, "STORE_PAUSES_S", (0.0, 0.0))
    tool.answer = LARGE
    (tmp_path / "content").write_bytes(b"a file where the folder of the store should be")
    expected = (kind, {"cause": "store_unavailable", "outcome": "executed"})
    assert failure(await run(tool.url, repeatable=repeatable)) == expected
    assert len(tool.requests) == 1


async def test_a_store_that_is_away_for_a_moment_costs_no_answer(run: Run, tool: Tool, tmp_path: Path) -> None:
    tool.answer = LARGE
    (tmp_path / "content").write_bytes(b"")
    # Longer than reading the answer and trying to keep it takes, shorter than the patience with the store.
    asyncio.get_running_loop().call_later(1.0, (tmp_path / "content").unlink)
    assert (await run(tool.url)).is_reference
    assert len(tool.requests) == 1


async def test_an_answer_that_nobody_has_time_to_check_is_waited_for_and_then_said_to_be_executed(
    run: Run, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: object) -> None:
        raise CheckersBusyError

    monkeypatch.setattr(large_results, "misfit_of", busy)
    monkeypatch.setattr(exchange, "STORE_PAUSES_S", (0.0, 0.0))
    tool.answer = LARGE
    found = failure(await run(tool.url, output={"type": "string"}))
    assert found == (ErrorType.EXECUTION_ERROR, {"cause": "checkers_busy", "outcome": "executed"})
    assert len(tool.requests) == 1
