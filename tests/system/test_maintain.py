"""A service maintains its tools by a schedule on Temporal, here with short intervals."""

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue
from temporalio.client import Client, ScheduleDescription, ScheduleOverlapPolicy

from tests.system.conftest import MakeService
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.client import names
from toolagent.contracts.routes import RunState, ToolRoute

SHORT = {"HEALTH_CHECK_INTERVAL_S": "1", "COLD_TOOL_IDLE_TIMEOUT_S": "2"}


@pytest.fixture
def hot_catalog(catalog: Path, tmp_path: Path) -> Path:
    """The catalog, in which `versatile` is hot."""
    data = tmp_path / "data"
    shutil.copytree(catalog, data)
    for name in ("policy.json", "environments"):
        (tmp_path / name).symlink_to(catalog.with_name(name))
    document = json.loads((data / "registry.json").read_text("utf-8"))
    for tool in document["tools"]:
        tool |= {"scheduling_mode": "hot"} if tool["tool_id"] == "versatile" else {}
    (data / "registry.json").write_text(json.dumps(document), "utf-8")
    return data


def route_of(service: ServiceProcess, tool_id: str) -> ToolRoute | None:
    answer = service.http.get("/tools/status").json()
    return next((ToolRoute.model_validate(one) for one in answer["tools"] if one["tool_id"] == tool_id), None)


def is_up(service: ServiceProcess, tool_id: str) -> ToolRoute | None:
    route = route_of(service, tool_id)
    return route if route is not None and route.state is RunState.RUNNING else None


async def schedule_of(service: ServiceProcess) -> ScheduleDescription:
    client = await Client.connect(service.temporal_address)
    return await client.get_schedule_handle(names.MAINTAIN_SCHEDULE).describe()


async def latest_run(service: ServiceProcess) -> JsonValue:
    """The result of the `Maintain` workflow that ended last."""
    client = await Client.connect(service.temporal_address)
    query = f"WorkflowType = '{names.MAINTAIN}' AND ExecutionStatus = 'Completed'"
    async for found in client.list_workflows(query, limit=1):
        handle = client.get_workflow_handle(found.id, run_id=found.run_id)
        return await handle.result()
    return None


def test_hot_tools_are_up_idle_ones_go_and_a_killed_one_comes_back(tmp_path: Path, hot_catalog: Path) -> None:
    service = ServiceProcess(tmp_path / "service", hot_catalog, **SHORT)
    try:
        service.start()
        hot = wait_until(lambda: is_up(service, "versatile"), "the hot tool is up before any call")
        assert run_tool(service.http, "quick", {"n": 1})[1].status == "success"
        wait_until(lambda: (route := route_of(service, "quick")) and route.state is RunState.STOPPED, "the idle cold tool is stopped")
        assert is_up(service, "versatile") == hot, "a hot one is not"
        assert run_tool(service.http, "quick", {"n": 2})[1].status == "success"
        assert hot.pid is not None
        os.kill(hot.pid, signal.SIGKILL)
        wait_until(lambda: (up := is_up(service, "versatile")) and up.pid != hot.pid, "the hot tool comes back")
        described = asyncio.run(schedule_of(service))
        assert described.schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
        assert [spec.every.total_seconds() for spec in described.schedule.spec.intervals] == [1.0]
        assert service.stop() == 0
        service.start(HEALTH_CHECK_INTERVAL_S="3")
        assert [spec.every.total_seconds() for spec in asyncio.run(schedule_of(service)).schedule.spec.intervals] == [3.0]
    finally:
        service.end()
        service.wait_until_nothing_is_left()


@pytest.mark.long
def test_a_service_that_is_killed_in_the_middle_of_rounds_goes_on(make_service: MakeService) -> None:
    service = make_service(**SHORT)
    service.start()
    for number in range(3):
        assert run_tool(service.http, "quick", {"n": number})[1].status == "success"
        run = wait_until(lambda: asyncio.run(latest_run(service)), "a round has ended", 60)
        assert isinstance(run, dict)
        service.kill()
        service.start()
    with httpx.Client(base_url=service.api_url, timeout=60, trust_env=False) as http:
        assert run_tool(http, "quick", {"n": 9})[1].status == "success"
    wait_until(lambda: (route := route_of(service, "quick")) and route.state is RunState.STOPPED, "it is stopped once it is idle", 60)
