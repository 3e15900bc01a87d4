"""A machine that a provider lists late is stopped after a restart; a machine of others is not."""

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from tests.system.conftest import MakeService
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.http import SessionListing
from toolagent.contracts.sessions import SessionEnd, SessionState, SessionView

pytestmark = pytest.mark.timeout(240)

_PATH = "/groups/machines/sessions"
_ROLES = ("launch", "stop", "list")


class Provider(ThreadingHTTPServer):
    """Rents machines. The answer to the first launch is lost, and its machine is `hidden` in the list until a test shows it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.running: dict[str, str] = {"machine-of-others": "somebody"}
        self.hidden: set[str] = {"machine-1"}
        self.stopped: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, path: str, call_id: str, params: dict[str, JsonValue]) -> JsonValue:
        """None: no answer."""
        if path == "/launch":
            machine = f"machine-{len(self.running)}"
            self.running[machine] = call_id
            return {"machine": machine} if machine not in self.hidden else None
        if path == "/stop":
            self.stopped.append(str(params["machine"]))
            self.running.pop(str(params["machine"]), None)
            return {}
        listed = {machine: call_id for machine, call_id in self.running.items() if machine not in self.hidden}
        return {"machines": [{"machine": machine, "launched_by": call_id} for machine, call_id in listed.items()]}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        params = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = cast("Provider", self.server).asked(self.path, self.headers["Idempotency-Key"], params)
        if answer is None:
            self.close_connection = True
            return
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def provider() -> Generator[Provider]:
    with Provider() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def service(make_service: MakeService, provider: Provider, tmp_path: Path) -> ServiceProcess:
    folder = tmp_path / "data"
    folder.mkdir()
    bound = {"machine": "$.machine"}
    tools = [
        {
            "tool_id": f"{role}_machine",
            "name": role,
            "backend_runtime": "remote",
            "side_effect_scope": "none" if role == "list" else "network",
            "idempotent": role == "list",
        }
        for role in _ROLES
    ]
    sources = {f"{role}_machine": [{"type": "remote", "remote_url": provider.url, "endpoint_path": f"/{role}"}] for role in _ROLES}
    group = {
        "group_id": "machines",
        "name": "Machines",
        "tool_ids": [f"{role}_machine" for role in _ROLES],
        "lifecycle": True,
        "steps": [{"tool_id": "launch_machine", "role": "launch"}, {"tool_id": "stop_machine", "role": "stop", "bindings": bound}],
        "verify": {"tool_id": "list_machine", "items": "$.machines"},
    }
    (folder / "registry.json").write_text(json.dumps({"version": "2.0", "tools": tools}), "utf-8")
    (folder / "sources.json").write_text(json.dumps({"version": "2.0", "sources": sources}), "utf-8")
    (folder / "groups.json").write_text(json.dumps({"groups": [group]}), "utf-8")
    service = make_service(DATA_DIR=str(folder))
    service.start()
    return service


def _sessions(service: ServiceProcess) -> tuple[SessionView, ...]:
    return SessionListing.model_validate_json(service.http.get(_PATH).raise_for_status().content).sessions


@pytest.mark.long
def test_a_second_machine_of_a_session_is_stopped_and_one_of_others_is_not(service: ServiceProcess, provider: Provider) -> None:
    answer = service.http.post(_PATH, json={}, timeout=90)
    view = SessionView.model_validate_json(answer.raise_for_status().content)
    assert (view.state, view.launched) == (SessionState.READY, {"machine": "machine-2"}), view.error
    service.kill()
    provider.hidden.clear()
    service.start()
    wait_until(lambda: provider.stopped, "what nobody has is stopped")
    found = wait_until(lambda: [one for one in _sessions(service) if one.end is SessionEnd.UNOWNED and one.ended_at], "that is noted")
    assert [(one.state, one.launched) for one in found] == [
        (SessionState.STOPPED, {"machine": "machine-1", "launched_by": found[0].launch_call_id})
    ]
    service.http.post(f"{_PATH}/{view.session_id}/stop", timeout=90).raise_for_status()
    assert provider.stopped == ["machine-1", "machine-2"]
    assert provider.running == {"machine-of-others": "somebody"}
