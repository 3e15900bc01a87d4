"""Tools that share a process or a container, when the whole service is killed."""

import json
import shutil
from pathlib import Path
from typing import cast

import psutil
import pytest
from pydantic import JsonValue

from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.labels import STATE
from engine.runtimes.process.ownership import Owner
from tests.docker.conftest import PROJECTS
from tests.docker.test_worker_killed import running
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

BOXED, LOCAL = ("boxed_one", "boxed_two"), ("local_one", "local_two")
PROJECT: dict[str, JsonValue] = {"host_dir": "projects/versatile", "endpoint_path": "/run"}
SOURCES: dict[str, dict[str, JsonValue]] = {
    **{tool_id: {"type": "docker", "dockerfile": "Dockerfile", "process": "boxed", **PROJECT} for tool_id in BOXED},
    **{tool_id: {"type": "local", "process": "beside", **PROJECT} for tool_id in LOCAL},
}


def catalog_in(folder: Path) -> Path:
    shutil.copytree(PROJECTS / "versatile", folder / "projects" / "versatile", ignore=shutil.ignore_patterns(".venv", "__pycache__"))
    tools = [{"tool_id": tool_id, "name": tool_id, "side_effect_scope": "none", "timeout_s": 60} for tool_id in SOURCES]
    (folder / "registry.json").write_text(json.dumps({"version": "2.0", "tools": tools}))
    sources = {tool_id: [source] for tool_id, source in SOURCES.items()}
    (folder / "sources.json").write_text(json.dumps({"version": "1.0", "sources": sources}))
    return folder


def images(state: Path) -> set[str]:
    engine = Engine()
    try:
        found = engine.in_this_thread(lambda api: api.images(filters={"label": f"{STATE}={Owner.state_of(state)}"}))
        return {str(one["Id"]) for one in found}
    finally:
        engine.close()


def routes(service: ServiceProcess, tools: tuple[str, ...]) -> list[tuple[str, str, int]]:
    """The state, endpoint and pid of each tool."""
    found = [cast("dict[str, JsonValue]", service.http.get(f"/tools/{tool_id}").json()["route"]) for tool_id in tools]
    return [(str(route["state"]), str(route["endpoint"]), cast("int", route["pid"])) for route in found]


def call_all(service: ServiceProcess) -> None:
    for tool_id in SOURCES:
        status, result = run_tool(service.http, tool_id, {"x": 1})
        assert (status, result.error) == (200, None), tool_id


def test_what_tools_share_is_found_again_or_started_once_and_goes_with_the_last_of_them(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path, catalog_in(tmp_path / "data"), DATA_DIR=str(tmp_path / "data"))
    service.start()
    try:
        call_all(service)
        up, built, boxed, local = running(service.state), images(service.state), routes(service, BOXED), routes(service, LOCAL)
        assert (len(up), len(built), len(set(boxed)), len(set(local))) == (1, 1, 1, 1)
        service.kill()
        wait_until(lambda: not psutil.pid_exists(local[0][2]), "the process has ended with its worker")
        service.start()
        # Before anybody calls one of them.
        assert routes(service, BOXED) == boxed
        assert [state for state, _, _ in routes(service, LOCAL)] == ["stopped"] * 2
        call_all(service)
        assert running(service.state) == up
        assert routes(service, BOXED) == boxed
        again = routes(service, LOCAL)
        assert len(set(again)) == 1
        # The sweep at the start has left the image, which is of no tool's own name.
        assert images(service.state) == built
        for tool_id, left in ((BOXED[0], up), (BOXED[1], set[str]())):
            assert service.http.post(f"/tools/{tool_id}/stop").status_code == 200
            assert running(service.state) == left
        service.http.post(f"/tools/{LOCAL[0]}/stop").raise_for_status()
        assert psutil.pid_exists(again[0][2])
        service.http.post(f"/tools/{LOCAL[1]}/stop").raise_for_status()
        assert not psutil.pid_exists(again[0][2])
    finally:
        service.end()
    assert running(service.state) == set()
