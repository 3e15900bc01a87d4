"""Launching and stopping servers, whatever the provider answers: a launched server is owned or stopped."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.cloud import Order, Server, marked
from engine.runtimes.builtin.runcomfy.launch import Arguments, Launch
from engine.runtimes.builtin.runcomfy.service import RunComfy
from tests.runcomfy.conftest import Tools, failure_of, tools_of
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.core.calls.results import failed
from toolagent.testing.servers.runcomfy_ledger import Fault, FaultKind
from toolagent.testing.servers.runcomfy_server import Account, RunComfyServer
from toolagent.testing.servers.serving import ServerThread
from toolagent_service.groups.sessions import may_have_launched

REFUSALS: list[tuple[FaultKind, ErrorType]] = [
    ("400", ErrorType.VALIDATION_ERROR),
    ("401", ErrorType.PERMISSION_DENIED),
    ("402", ErrorType.BUDGET_EXCEEDED),
    ("403", ErrorType.PERMISSION_DENIED),
    ("429", ErrorType.REJECTED),
]


async def test_a_server_is_launched_and_stopped(tools: Tools) -> None:
    launched = await tools.launch()
    assert (launched.status, launched.server_type) == ("Ready", "medium")
    assert launched.url == f"{tools.server.url}/comfy/{launched.server_id}"
    assert tools.count("running") == [launched.server_id]
    stopped = await tools.stop(launched.server_id)
    assert (stopped.stopped, stopped.already_gone, stopped.status) == (True, False, "Deleting")
    assert (tools.count("launched"), tools.count("stopped"), tools.count("running")) == (1, 1, [])


async def test_a_server_that_is_gone_counts_as_stopped(tools: Tools) -> None:
    stopped = await tools.stop("no-such-server")
    assert (stopped.stopped, stopped.already_gone) == (True, True)


async def test_a_server_that_is_unknown_just_after_its_launch_is_waited_for(tmp_path: Path) -> None:
    with RunComfyServer(start_s=0.01, hidden_s=0.2) as server:
        tools = tools_of(server, tmp_path)
        assert (await tools.launch()).status == "Ready"
        assert tools.count("launched") == 1


@pytest.mark.parametrize(("kind", "error_type"), REFUSALS)
async def test_a_launch_that_is_refused_says_why_and_starts_nothing(tools: Tools, kind: FaultKind, error_type: ErrorType) -> None:
    tools.server.fail(Fault(kind=kind, at="launch", retry_after=7))
    failure = await failure_of(tools.launch())
    assert (failure.error_type, failure.outcome, tools.count("launched")) == (error_type, "failed", 0)
    if error_type is ErrorType.PERMISSION_DENIED:
        assert failure.details["secret"] == "RUNCOMFY_API_KEY"  # noqa: S105 - the name of one
    if error_type is ErrorType.REJECTED:
        assert failure.details["retry_after_s"] == 7


@pytest.mark.parametrize("kind", ["500", "garbage"])
async def test_after_an_answer_that_tells_nothing_the_launch_is_of_unknown_outcome(tools: Tools, kind: FaultKind) -> None:
    tools.server.fail(Fault(kind=kind, at="launch"))
    failure = await failure_of(tools.launch())
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")
    assert failure.details["candidates"] == []
    assert (tools.count("launched"), tools.count("running")) == (0, [])


async def test_a_launch_whose_answer_is_lost_is_found_and_not_made_again(tools: Tools) -> None:
    tools.server.fail(Fault(kind="lost_answer", at="launch"))
    launched = await tools.launch()
    assert (tools.count("launched"), tools.count("running")) == (1, [launched.server_id])


def test_the_duration_tells_whose_launch_a_server_is() -> None:
    durations = {marked(3600, f"call-{number}") for number in range(200)}
    assert len(durations) > 50
    assert 3600 * 0.95 < min(durations) < max(durations) <= 3600
    assert marked(3600, "call-1") == marked(3600, "call-1")


def test_a_server_of_another_launch_is_not_taken_for_the_lost_one() -> None:
    before = Server(server_id="other", server_type="medium", estimated_duration=marked(3600, "call-other"))
    assert not Order("version-1", "medium", marked(3600, "call-one")).resembles(before)


async def test_the_server_of_an_earlier_call_is_found_by_its_id(tools: Tools) -> None:
    """As after the death of the worker that launched it."""
    every = [await tools.launch(call_id=f"call-number-{number}", estimated_duration=1800) for number in range(4)]
    for number, launched in enumerate(every):
        found = await tools.launch(call_id="call-finding", estimated_duration=1800, launched_by=f"call-number-{number}")
        assert found == launched
    assert tools.count("launched") == 4


async def test_a_server_of_another_call_that_looks_the_same_is_left_out(tools: Tools) -> None:
    """Sixty seconds leave room for three calls only."""
    every = {(await tools.launch(call_id=f"call-number-{number}", estimated_duration=60)).server_id for number in range(6)}
    failure = await failure_of(tools.launch(estimated_duration=60, launched_by="call-number-0"))
    candidates = failure.details["candidates"]
    assert isinstance(candidates, list)
    assert (failure.details["cause"], {*map(str, candidates)} < every) == ("ambiguous", True)
    found = await tools.launch(estimated_duration=60, launched_by="call-number-0", others=candidates[1:])
    assert found.server_id == candidates[0]


async def test_a_call_that_launched_nothing_has_no_server(tools: Tools) -> None:
    await tools.launch(call_id="call-number-1")
    failure = await failure_of(tools.launch(launched_by="call-number-2"))
    assert (failure.error_type, failure.details) == (ErrorType.REJECTED, {"cause": "not_found", "candidates": []})
    assert tools.count("launched") == 1


async def test_a_server_that_was_ready_before_the_session_began_is_of_another_call(tools: Tools) -> None:
    launched = await tools.launch(call_id="call-number-1")
    ready_at = datetime.fromisoformat(launched.started_at)
    failure = await failure_of(tools.launch(launched_by="call-number-1", launched_after=(ready_at + timedelta(minutes=5)).isoformat()))
    assert failure.details["cause"] == "not_found"
    assert await tools.launch(launched_by="call-number-1", launched_after=(ready_at - timedelta(minutes=5)).isoformat()) == launched


async def test_a_server_that_is_only_looked_for_is_found_though_it_is_not_ready_and_is_not_stopped(tools: Tools) -> None:
    tools.server.fail(Fault(kind="never_ready"))
    launching = asyncio.create_task(tools.launch(call_id="call-number-1"))
    await tools.heard("server ")
    found = await tools.launch(launched_by="call-number-1")
    assert (found.server_id, found.status, found.url, found.started_at) == (tools.running()[0], "Starting", "", "")
    assert tools.count("stopped") == 0
    launching.cancel()
    with suppress(asyncio.CancelledError):
        await launching
    assert tools.count("stopped") == 1


async def test_a_server_that_does_not_become_ready_is_stopped(tools: Tools) -> None:
    tools.server.fail(Fault(kind="never_ready"))
    failure = await failure_of(tools.launch(timeout_s=1.0))
    assert (failure.error_type, failure.outcome, failure.details["stopped"]) == (ErrorType.TIMEOUT, "failed", True)
    assert (tools.count("launched"), tools.count("stopped")) == (1, 1)


async def test_a_server_that_fails_to_start_is_stopped(tools: Tools) -> None:
    tools.server.fail(Fault(kind="fails_to_start"))
    failure = await failure_of(tools.launch())
    assert failure.error_type is ErrorType.EXECUTION_ERROR
    assert (tools.count("launched"), tools.count("stopped")) == (1, 1)


async def test_a_stop_that_fails_at_first_is_asked_for_again(tools: Tools) -> None:
    tools.server.fail(Fault(kind="fails_to_start"))
    tools.server.fail(Fault(kind="500", at="stop", times=3))
    failure = await failure_of(tools.launch())
    assert failure.details["stopped"] is True
    assert tools.count("running") == []


async def test_a_launch_that_is_cancelled_stops_its_server(tools: Tools) -> None:
    tools.server.fail(Fault(kind="never_ready"))
    launching = asyncio.create_task(tools.launch())
    await tools.heard("server ")
    launching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launching
    assert (tools.count("launched"), tools.count("stopped")) == (1, 1)


async def test_a_launch_that_is_cancelled_before_its_answer_stops_what_it_started(tools: Tools) -> None:
    tools.server.fail(Fault(kind="slow", at="launch", seconds=0.3))
    launching = asyncio.create_task(tools.launch())
    async with asyncio.timeout(60):
        while not tools.running():  # noqa: ASYNC110 - it is another thread's
            await asyncio.sleep(0.01)
    launching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launching
    assert (tools.count("launched"), tools.count("stopped")) == (1, 1)


async def test_a_server_that_cannot_be_stopped_is_told(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtimes.builtin.runcomfy.service._STOP_S", 0.2)
    tools.server.fail(Fault(kind="fails_to_start"))
    tools.server.fail(Fault(kind="500", at="stop", times=100))
    failure = await failure_of(tools.launch())
    assert (failure.details["stopped"], failure.outcome) == (False, "unknown")
    assert tools.running() == [failure.details["server_id"]]
    async with httpx.AsyncClient(base_url=tools.server.url) as http:
        await http.delete("/control/faults")
    assert (await tools.stop(tools.running()[0])).stopped


@pytest.mark.parametrize("kind", ["429", "500", "garbage"])
async def test_a_status_that_cannot_be_had_for_a_while_is_asked_for_again(tools: Tools, kind: FaultKind) -> None:
    tools.server.fail(Fault(kind=kind, at="status", times=3))
    assert (await tools.launch()).status == "Ready"


async def test_a_key_that_is_withdrawn_meanwhile_ends_the_wait(tools: Tools) -> None:
    tools.server.fail(Fault(kind="401", at="status"))
    failure = await failure_of(tools.launch())
    assert (failure.error_type, failure.details["stopped"]) == (ErrorType.PERMISSION_DENIED, True)


@pytest.mark.parametrize("kind", ["401", "402", "403"])
async def test_a_server_of_an_account_that_is_closed_meanwhile_is_one_that_its_session_stops(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, kind: FaultKind
) -> None:
    """A refused request after the launch does not undo the launch."""
    monkeypatch.setattr("engine.runtimes.builtin.runcomfy.service._STOP_S", 0.2)
    for at in ("status", "stop"):
        tools.server.fail(Fault(kind=kind, at=at, times=1_000))
    failure = await failure_of(tools.launch())
    error = ToolError(type=failure.error_type, message=failure.message, details={**failure.details, "outcome": failure.outcome})
    assert len(tools.running()) == 1
    assert may_have_launched(failed("call-launch", "launch_comfy_env", error, datetime.now(UTC)))


async def test_launches_at_once_get_a_server_each_although_answers_are_lost(tools: Tools) -> None:
    tools.server.fail(Fault(kind="lost_answer", at="launch", times=2))
    launch = Launch(tools.service)
    every = [launch.run(Arguments(), tools.context(f"call-{number}")) for number in range(4)]
    ids = {one.server_id for one in await asyncio.gather(*every)}
    assert (len(ids), tools.count("launched")) == (4, 4)
    assert set(tools.running()) == ids


async def test_without_an_address_the_setting_is_named(tools: Tools) -> None:
    bare = Tools(tools.server, tools.folder, RunComfy(BuiltinOptions()))
    for call in (bare.launch(), bare.stop("server-1"), bare.execute("server-1")):
        failure = await failure_of(call)
        assert (failure.error_type, failure.details) == (ErrorType.UNAVAILABLE, {"setting": "TOOL_AGENT_RUNCOMFY_URL", "sent": False})


@pytest.mark.parametrize("secret", ["RUNCOMFY_USER_ID", "RUNCOMFY_API_KEY"])
async def test_a_secret_that_is_not_set_is_named(tools: Tools, secret: str) -> None:
    failure = await failure_of(tools_of(tools.server, tools.folder, **{secret: ""}).launch())
    assert (failure.error_type, failure.details["setting"], failure.details["sent"]) == (
        ErrorType.UNAVAILABLE,
        f"TOOL_AGENT_SECRET_{secret}",
        False,
    )


async def test_a_wrong_key_is_refused_and_not_told(tools: Tools) -> None:
    failure = await failure_of(tools_of(tools.server, tools.folder, RUNCOMFY_API_KEY="a-wrong-key").launch())
    assert failure.error_type is ErrorType.PERMISSION_DENIED
    assert "a-wrong-key" not in f"{failure.message} {failure.details}"


@pytest.mark.parametrize(
    ("kind", "error_type", "outcome"),
    [
        ("401", ErrorType.PERMISSION_DENIED, "failed"),
        ("429", ErrorType.REJECTED, "failed"),
        ("500", ErrorType.UNAVAILABLE, "unknown"),
        ("garbage", ErrorType.UNAVAILABLE, "unknown"),
        ("lost_answer", ErrorType.UNAVAILABLE, "unknown"),
    ],
)
async def test_a_stop_that_is_not_confirmed_is_no_success(tools: Tools, kind: FaultKind, error_type: ErrorType, outcome: str) -> None:
    launched = await tools.launch()
    tools.server.fail(Fault(kind=kind, at="stop"))
    failure = await failure_of(tools.stop(launched.server_id))
    assert (failure.error_type, failure.outcome) == (error_type, outcome)
    assert (await tools.stop(launched.server_id)).stopped
    assert tools.count("running") == []


@pytest.mark.parametrize("status", [302, 405, 408, 423])
async def test_a_stop_that_is_answered_by_nothing_but_another_status_is_not_confirmed(tools: Tools, status: int) -> None:
    async def answer(_: Request) -> Response:
        return Response(status_code=status)

    with ServerThread(Starlette(routes=[Route("/users/me/servers/one", answer, methods=["DELETE"])])) as provider:
        options = BuiltinOptions(runcomfy_url=provider.url, secrets={"RUNCOMFY_USER_ID": "me", "RUNCOMFY_API_KEY": "key"}.get)
        failure = await failure_of(Tools(tools.server, tools.folder, RunComfy(options)).stop("one"))
    assert (failure.error_type, failure.outcome, failure.details["status"]) == (ErrorType.UNAVAILABLE, "unknown", status)


async def test_servers_are_listed_whoever_launched_them_until_they_are_stopped(tools: Tools) -> None:
    launched = await tools.launch()
    (listed,) = (await tools.listed()).servers
    assert (listed.server_id, listed.status, listed.started_at) == (launched.server_id, "Ready", launched.started_at)
    await tools.stop(launched.server_id)
    assert (await tools.listed()).servers == ()


async def test_a_provider_that_is_not_there_is_unavailable(tools: Tools) -> None:
    address = tools.server.api_url
    tools.server.stop()
    options = BuiltinOptions(runcomfy_url=address, secrets=lambda _: "something")
    failure = await failure_of(Tools(tools.server, tools.folder, RunComfy(options)).launch())
    assert (failure.error_type, failure.outcome) == (ErrorType.UNAVAILABLE, "failed")


@pytest.mark.parametrize("url", ["ftp://a.test", "https://", "https://me:pw@a.test", "https://a.test/?key=1"])
def test_an_address_that_is_none_is_refused_at_start(url: str) -> None:
    with pytest.raises(ValueError, match="TOOL_AGENT_RUNCOMFY_URL"):
        RunComfy(BuiltinOptions(runcomfy_url=url))


async def test_an_account_without_workflows_says_so(tmp_path: Path) -> None:
    with RunComfyServer(account=Account(versions=())) as server:
        failure = await failure_of(tools_of(server, tmp_path).launch())
    assert (failure.error_type, failure.details["field"]) == (ErrorType.VALIDATION_ERROR, "workflow_version_id")
