"""The whole service with a docker tool: `kill -9` leaves the container, the next start finds it and restores its route."""

import json
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.labels import STATE
from engine.runtimes.process.ownership import Owner
from tests.docker.conftest import PROJECTS
from tests.system.service_process import ServiceProcess, run_tool

pytestmark = pytest.mark.timeout(300)

SOURCE: dict[str, JsonValue] = {"type": "docker", "dockerfile": "Dockerfile", "host_dir": "projects/versatile", "endpoint_path": "/run"}
MANIFEST: dict[str, JsonValue] = {
    "tool_id": "boxed",
    "name": "Boxed",
    "backend_runtime": "docker",
    "side_effect_scope": "none",
    "timeout_s": 60,
}


NOWHERE: dict[str, JsonValue] = {"type": "remote", "remote_url": "http://127.0.0.1:1"}


def catalog_in(folder: Path) -> Path:
    """A catalog whose docker source is not the first source of its tool."""
    shutil.copytree(PROJECTS / "versatile", folder / "projects" / "versatile", ignore=shutil.ignore_patterns(".venv", "__pycache__"))
    (folder / "registry.json").write_text(json.dumps({"version": "2.0", "tools": [MANIFEST]}))
    (folder / "sources.json").write_text(json.dumps({"version": "1.0", "sources": {"boxed": [NOWHERE, SOURCE]}}))
    return folder


def running(state: Path) -> set[str]:
    engine = Engine()
    try:
        found = engine.in_this_thread(lambda api: api.containers(all=True, filters={"label": f"{STATE}={Owner.state_of(state)}"}))
        return {str(one["Id"]) for one in found}
    finally:
        engine.close()


def listed(service: ServiceProcess) -> dict[str, str]:
    """The containers of the export, with their states."""
    exported = service.http.get("/catalog").json()["containers.json"]["containers"]
    return {one["container_id"]: one["status"] for one in exported}


@pytest.mark.long
def test_a_container_outlives_a_killed_worker_and_serves_the_next_one(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path, catalog_in(tmp_path / "data"), DATA_DIR=str(tmp_path / "data"))
    service.start()
    try:
        status, first = run_tool(service.http, "boxed", {"x": 1})
        assert (status, first.error) == (200, None)
        up = running(service.state)
        assert len(up) == 1
        assert listed(service) == dict.fromkeys(up, "running")
        service.kill()
        assert running(service.state) == up
        service.start()
        route = service.http.get("/tools/boxed").json()["route"]
        assert (route["state"], route["endpoint"][:5]) == ("running", "unix:")
        status, again = run_tool(service.http, "boxed", {"x": 2})
        assert (status, again.error) == (200, None)
        assert running(service.state) == up
        assert service.http.post("/tools/boxed/stop").status_code == 200
        assert listed(service) == dict.fromkeys(up, "destroyed")
    finally:
        service.end()
    assert running(service.state) == set()
