"""A service whose calls use its lane, and ways to freeze the service, Temporal or the database."""

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import JsonValue
from temporalio.client import Client

from tests.system.far_tools import FarServer, far_catalog, far_server
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.temporal_server import TemporalServer
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.lanes import Lane, LaneListing
from toolagent.core.calls.idempotency import call_id_for_key
from workers.temporal.connection import connect

__all__ = ["Call", "TroubledLane", "is_refused", "troubled_lane"]

_ANSWER_S = 150
_AT_ONCE = 64
_MANY = 80
_TOOL_S = 300


@dataclass(frozen=True, slots=True)
class Call:
    """A sent call. The far tool knows it by its `line`, which is its key as well if it has one."""

    tool: str
    params: dict[str, JsonValue]
    line: str
    has_key: bool
    answer: Future[httpx.Response]

    @property
    def call_id(self) -> str:
        assert self.has_key, "Only who sent it knows its id."
        return call_id_for_key(None, self.line)

    @property
    def acts(self) -> bool:
        return self.tool.startswith("far_acts")


class TroubledLane:
    """`many` tools of each kind are asked in turn, because a tool that was slow does not use the lane any more."""

    def __init__(self, service: ServiceProcess, far: FarServer, temporal: TemporalServer, many: int) -> None:
        self.service, self.far, self.temporal = service, far, temporal
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        self._fresh = {kind: iter(range(many)) for kind in ("acts", "asks")}
        self._lines = iter(range(1_000_000))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def ask(self, tool: str, params: dict[str, JsonValue], line: str = "", *, has_key: bool = True) -> Call:
        """Send a call without waiting for its answer."""
        line = line or f"{tool} {next(self._lines)}"
        return Call(tool, params, line, has_key, self._threads.submit(self._sent, tool, params, line if has_key else None))

    def ask_far(self, kind: str, *, held: bool = False, has_key: bool = True) -> Call:
        """Send a call to a tool that `acts` or only `asks` (`kind`). A `held` call is answered when it is released."""
        line = f"line {next(self._lines)}"
        return self.ask(f"far_{kind}_{next(self._fresh[kind])}", {"line": line, "held": held}, line, has_key=has_key)

    def ask_both(self, *, held: bool = False, has_key: bool = True) -> tuple[Call, Call]:
        """Send a call with side effects and one without."""
        return self.ask_far("acts", held=held, has_key=has_key), self.ask_far("asks", held=held, has_key=has_key)

    def wait_until_made(self, calls: Sequence[Call]) -> None:
        """Wait until the tools of the calls are asked."""
        wait_until(lambda: all(self.far.begun[call.line] for call in calls), "the tools are asked")

    def wait_until_claimed(self, calls: Sequence[Call]) -> None:
        """Wait until the calls are accepted."""
        wait_until(lambda: {call.call_id for call in calls} <= self.claims(), "the calls are claimed")

    def release(self, calls: Sequence[Call]) -> None:
        self.far.released.update(call.line for call in calls)

    def claims(self) -> set[str]:
        with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as database:
            return {call_id for (call_id,) in database.execute("SELECT call_id FROM claims")}

    def lane(self) -> Lane:
        """The lane of this service."""
        answer = self.service.http.get("/lanes")
        (lane,) = LaneListing.model_validate_json(answer.content).lanes
        return lane

    async def client(self) -> Client:
        return await connect(self.temporal.address, "default", sandbox=False, patience_s=10)

    def runs(self, workflow_id: str) -> set[str]:
        """The runs of a workflow that Temporal lists by now."""

        async def listed() -> set[str]:
            temporal = await self.client()
            return {run.run_id async for run in temporal.list_workflows(f'WorkflowId = "{workflow_id}"')}

        return asyncio.run(listed())

    @contextmanager
    def once_a_tool_is_asked(self, trouble: Callable[[], object], came: threading.Event | None = None) -> Generator[None]:
        """Call `trouble` at the first request to a far tool in the block, during its first batch."""
        came, first = came or threading.Event(), threading.Lock()

        def look() -> None:
            if first.acquire(blocking=False):
                trouble()
                came.set()

        self.far.look = look
        try:
            yield
        finally:
            self.far.look = lambda: None

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Freezes all threads of the service."""
        os.kill(self.service.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.service.pid, signal.SIGCONT)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Another connection writes to the database, and does not end."""
        with closing(sqlite3.connect(self._file, isolation_level=None, timeout=20)) as database:
            database.execute("BEGIN EXCLUSIVE")
            try:
                yield
            finally:
                database.execute("ROLLBACK")

    def ended_once(self, calls: Sequence[Call]) -> list[ToolResult]:
        """The results. Requires that each is what its caller was told and is told later, and that side effects happened at most once."""
        return [self._ended_once(call) for call in calls]

    def require_that_it_goes_on(self) -> None:
        """Requires that new calls use the lane, and that nothing is left of old ones."""
        wait_until(lambda: self._takes_the_lane(), "calls take the lane")
        wait_until(lambda: not self.claims(), "nothing is claimed any more")

    def _takes_the_lane(self) -> bool:
        status, result = run_tool(self.service.http, "echo", {"message": "hello"})
        assert status in {httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE}, result
        return result.metadata.get("way") == "lane"

    def _ended_once(self, call: Call) -> ToolResult:
        answer = call.answer.result(_ANSWER_S)
        result = ToolResult.model_validate_json(answer.content)
        if answer.is_server_error:
            assert (answer.status_code, "Retry-After" in answer.headers) == (httpx.codes.SERVICE_UNAVAILABLE, True), answer.text
        if is_refused(result):
            assert not self.far.begun[call.line], "It was said not to be sent."
            result = run_tool(self.service.http, call.tool, call.params, call.line)[1]
        elif result.error_type is ErrorType.UNAVAILABLE:
            ended = self.service.ended_task(result.call_id).result
            assert ended is not None
            result = ended
        if call.has_key:
            assert run_tool(self.service.http, call.tool, call.params, call.line)[1] == result
            assert self.service.task(call.call_id).result == result
        assert not call.acts or self.far.begun[call.line] <= 1, result
        return result

    def _sent(self, tool: str, params: dict[str, JsonValue], key: str | None) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        body = {"tool_id": tool, "params": params}
        return httpx.post(f"{self.service.api_url}/run_tool", json=body, headers=headers, timeout=_ANSWER_S, trust_env=False)

    @property
    def _file(self) -> str:
        return str(self.service.state / "tool-agent.db")


@contextmanager
def troubled_lane(folder: Path, most_updates: int | None = None) -> Generator[TroubledLane]:
    """At an external Temporal server, which has its own limits and delays.

    `most_updates` are taken of one run of a workflow; the server's default is 2,000.
    """
    temporal = TemporalServer(folder, {"history.maxTotalUpdates": most_updates} if most_updates is not None else {})
    temporal.start()
    try:
        with far_server() as far:
            data = far_catalog(folder / "data", far.url, _MANY, timeout_s=_TOOL_S)
            settings = {"TEMPORAL_ADDRESS": temporal.address, "LANES": "all", "SHUTDOWN_GRACE_S": "2", "TEMPORAL_PATIENCE_S": "3"}
            service = ServiceProcess(folder, data, program="tests.system.harmful_service", **settings)
            lane = TroubledLane(service, far, temporal, _MANY)
            try:
                service.start()
                yield lane
            finally:
                service.end()
                lane.close()
    finally:
        temporal.kill()


def is_refused(result: ToolResult) -> bool:
    """Whether the call was not made, and will not be."""
    return result.error is not None and isinstance(result.error.details, dict) and result.error.details.get("sent") is False
