"""Ten thousand concurrent calls, and more batches than one run of a workflow takes, at a Temporal server with default limits."""

import asyncio
import json
import resource
from collections.abc import Generator
from dataclasses import dataclass

import httpx
import pytest

from tests.machine import lacking
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.troubled_lane import TroubledLane, is_refused, troubled_lane
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.core.calls.idempotency import call_id_for_key

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

_CALLS = 10_000
_BATCHES = 2_500
"""A server refuses more than 2,000 updates of one run."""

_AGAIN_AT_ONCE = 64
_ANSWER_S = 300
_SOCKETS = _CALLS + 2_000
_OF_A_SHELL = 1_024


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Generator[TroubledLane]:
    """The lane of a service with the default limits of a shell, which raises its own. The test needs as many sockets."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < _SOCKETS:
        lacking(f"a process may open {most} files, and needs {_SOCKETS}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServiceProcess, "is_copied", False)  # the process that is copied may have begun with more
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OF_A_SHELL, most))
        try:
            with troubled_lane(tmp_path_factory.mktemp("lane")) as lane:
                resource.setrlimit(resource.RLIMIT_NOFILE, (_SOCKETS, most))
                yield lane
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.mark.promise("accepted-means-ended", "a-key-is-one-call")
def test_each_of_ten_thousand_calls_at_once_ends_once_or_is_refused(lane: TroubledLane) -> None:
    lane.require_that_it_goes_on()
    answers = asyncio.run(_all_at_once(lane))
    assert {answer.status for answer in answers} <= {httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE}
    results = [answer.result for answer in answers]
    for number, (answer, result) in enumerate(zip(answers, results, strict=True)):
        if answer.status == httpx.codes.OK.value:
            assert (result.call_id, result.result) == (call_id_for_key(None, _key(number)), {"message": number})
        else:
            assert (result.error_type, answer.retry_after) == (ErrorType.UNAVAILABLE, "1"), result
    refused = [number for number, result in enumerate(results) if is_refused(result)]
    waited_for = [number for number, result in enumerate(results) if result.error is not None and not is_refused(result)]
    # What was refused was not accepted: nothing is known of it. All else ends though nobody asks.
    assert {lane.service.http.get(f"/tasks/{call_id_for_key(None, _key(number))}").status_code for number in refused[:200]} <= {404}
    wait_until(lambda: not lane.claims(), "all that was accepted has ended", 300)
    for number in waited_for:
        ended = lane.service.task(call_id_for_key(None, _key(number))).result
        assert ended is not None
        assert ended.result == {"message": number}
    again = asyncio.run(_one_after_the_other(lane))
    assert [(answer.status, answer.result.result) for answer in again] == [
        (httpx.codes.OK, {"message": number}) for number in range(_CALLS)
    ]
    assert [one for one, answer in zip(results, again, strict=True) if one.status == "success" and one != answer.result] == []
    lane.require_that_it_goes_on()


def test_a_lane_goes_on_in_new_runs_at_a_server_with_its_own_limits(lane: TroubledLane) -> None:
    lane.require_that_it_goes_on()
    name = lane.lane().workflow_id
    before = lane.runs(name)
    for number in range(_BATCHES):
        status, result = run_tool(lane.service.http, "echo", {"message": number})
        assert (status, result.metadata["way"]) == (200, "lane"), result
    assert len(lane.runs(name) - before) >= 2


def _key(number: int) -> str:
    return f"many {number}"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    retry_after: str | None
    result: ToolResult


async def _asked(lane: TroubledLane, number: int) -> _Answer:
    """A call over its own connection; a client with a pool of ten thousand takes minutes."""
    url = httpx.URL(lane.service.api_url)
    body = json.dumps({"tool_id": "echo", "params": {"message": number}})
    head = f"POST /run_tool HTTP/1.1\r\nHost: {url.host}\r\nIdempotency-Key: {_key(number)}\r\nContent-Type: application/json\r\n"
    async with asyncio.timeout(_ANSWER_S):
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        said, _, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    status, *lines = said.decode().split("\r\n")
    headers = httpx.Headers([(name, value) for name, _, value in (line.partition(": ") for line in lines)])
    return _Answer(int(status.split()[1]), headers.get("Retry-After"), ToolResult.model_validate_json(content))


async def _all_at_once(lane: TroubledLane) -> list[_Answer]:
    return await asyncio.gather(*(_asked(lane, number) for number in range(_CALLS)))


async def _one_after_the_other(lane: TroubledLane) -> list[_Answer]:
    """Calls by a few callers, one after the other."""
    places = asyncio.Semaphore(_AGAIN_AT_ONCE)

    async def asked(number: int) -> _Answer:
        async with places:
            return await _asked(lane, number)

    return await asyncio.gather(*(asked(number) for number in range(_CALLS)))
