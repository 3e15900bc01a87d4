"""Behaviour that only a real server and a real connection show."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import LIMITS, WEATHER_SOURCE, House
from tests.api.serving import reached, served
from toolagent.client.http import Refused, ToolAgentHttp
from toolagent.contracts.calls import Caller, CallMode, ToolCall, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.contracts.routes import ControlAction, RunState
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.results import succeeded


async def test_a_client_that_leaves_loses_nothing(house: House) -> None:
    started = asyncio.Event()

    def begin(_call: ToolCall, _call_id: str) -> None:
        started.set()

    house.client.script = begin
    async with reached(house.dependencies) as http:
        request = asyncio.create_task(http.post("/run_tool", json={"tool_id": "echo"}, headers={"X-Call-Id": "call-leaving-1"}))
        await asyncio.wait_for(started.wait(), 60)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert (await http.get("/tasks/call-leaving-1")).json()["status"] == "running"
        house.client.finish("call-leaving-1", succeeded("call-leaving-1", "echo", 7, datetime.now(UTC), execution_time=0.1, metadata={}))
        task = (await http.get("/tasks/call-leaving-1")).json()
        assert (task["status"], task["result"]["result"]) == ("completed", 7)


@pytest.mark.parametrize("path", ["/run_tool", "/files"])
async def test_a_client_that_writes_too_much_before_it_reads_is_told_so(house: House, path: str) -> None:
    kind = "multipart/form-data; boundary=b" if path == "/files" else "application/json"
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n' + b"x" * 8_000_000
    async with served(house.dependencies) as url:
        for chunked in (False, True):
            assert await asyncio.to_thread(status_of_post, url + path, body, kind, chunked=chunked) == 413


def status_of_post(url: str, body: bytes, kind: str, *, chunked: bool) -> int:
    """The status of a POST by the standard library, which writes everything before it reads."""
    parsed = httpx.URL(url)
    with closing(HTTPConnection(parsed.host, parsed.port, timeout=20)) as connection:
        sent = iter([body]) if chunked else body
        connection.request("POST", parsed.path, sent, {"Content-Type": kind, "Connection": "close"}, encode_chunked=chunked)
        return connection.getresponse().status


async def test_a_file_goes_in_and_out(house: House) -> None:
    content = bytes(range(256)) * (LIMITS.max_file_bytes // 256)
    async with reached(house.dependencies) as http:
        put = await http.post("/files", files={"file": ("图.bin", content)})
        got = await http.get(put.headers["location"])
    assert (put.status_code, got.content) == (201, content)


async def test_the_packages_own_client_understands_every_answer(stocked: House, tmp_path: Path) -> None:
    async with served(stocked.dependencies) as url:
        await asyncio.to_thread(talk, url, tmp_path)
    assert [control.action for control in stocked.client.controls] == [ControlAction.START, ControlAction.STOP, ControlAction.DESTROY]


def talk(url: str, folder: Path) -> None:
    (folder / "图 1.txt").write_text("x")
    with ToolAgentHttp(url) as service:
        assert service.health().status == "ok"
        assert [tool.tool_id for tool in service.tools().tools] == ["echo", "image_compress_api", "weather"]
        assert service.tool("weather").sources == (WEATHER_SOURCE,)
        assert [tool.tool_id for tool in service.search("图片", "cv").tools] == ["image_compress_api"]
        assert len(service.routes()) == 3
        assert service.start("weather").state is RunState.RUNNING
        assert service.stop("weather").state is RunState.STOPPED
        assert service.destroy("weather").destroyed
        accepted = service.run(ToolCall(tool_id="echo", mode=CallMode.ASYNC, params={"a": 1}))
        assert isinstance(accepted, TaskAccepted)
        ended = service.run(ToolCall(tool_id="echo", caller=Caller(caller_id="cli")))
        assert isinstance(ended, ToolResult)
        assert service.task(accepted.task_id).status is TaskState.COMPLETED
        assert service.cancel(accepted.task_id).result == service.task(accepted.task_id).result
        file = service.upload(folder / "图 1.txt")
        target = folder / "down"
        target.mkdir()
        assert service.download(file.file_id, target).read_text() == "x"
        with pytest.raises(Refused) as refusal:
            service.tool("wether")
        assert (refusal.value.problem.status, refusal.value.problem.type) == (404, "tool_not_found")
        assert refusal.value.problem.details == {"nearest": ["weather"]}
