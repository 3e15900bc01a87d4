"""Sessions of a group at a real service that is killed: rented servers are stopped, once.

All tests use one service, and a provider each. Rows and alerts of earlier tests are not looked at.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from engine.network.ports import free_port
from tests.system.making_tasks import rows
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.hosts import HostDrain, HostListing
from toolagent.contracts.http import SessionListing
from toolagent.contracts.records import EventType
from toolagent.contracts.sessions import SessionEnd, SessionState, SessionView
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.runcomfy_server import Account, RunComfyServer
from workers.temporal.dev_server import temporal_binary

pytestmark = pytest.mark.timeout(240)

_PATH = "/groups/runcomfy_lifecycle/sessions"
_LAUNCH_S = 2.0
_LAUNCH, _RUN, _STOP = "launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env"
_NOTHING: JsonValue = {"nodes": []}


@pytest.fixture
def node_s() -> float:
    """The duration of a node of a workflow."""
    return 0.05


@pytest.fixture(scope="module")
def port() -> int:
    """The port of the provider."""
    return free_port()


@pytest.fixture
def runcomfy(port: int, node_s: float) -> Generator[RunComfyServer]:
    """A provider for each test, without servers."""
    with RunComfyServer(port, start_s=_LAUNCH_S, node_s=node_s) as server:
        yield server


class Shared(ServiceProcess):
    """`before`: the ids of sessions, and the alerts, from before the test."""

    before: tuple[frozenset[str], int] = (frozenset(), 0)


@pytest.fixture(scope="module")
def shared(catalog: Path, port: int, tmp_path_factory: pytest.TempPathFactory) -> Generator[Shared]:
    account, url = Account(), f"http://127.0.0.1:{port}/prod/api"
    settings = {"SECRET_RUNCOMFY_USER_ID": account.user_id, "SECRET_RUNCOMFY_API_KEY": account.key}
    service = Shared(tmp_path_factory.mktemp("sessions"), catalog, RUNCOMFY_URL=url, **settings)
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


@pytest.fixture
def service(shared: Shared, runcomfy: RunComfyServer) -> Shared:
    """Runs at the begin of each test, whatever the test before did."""
    del runcomfy
    if not shared.is_running:
        shared.end()
        shared.start()
    shared.before = (frozenset(view.session_id for view in _listed(shared)), len(_alerts(shared)))
    return shared


def _opened(service: ServiceProcess, key: str) -> SessionView:
    answer = service.http.post(_PATH, json={"params": {}}, headers={"Idempotency-Key": key}, timeout=90)
    return SessionView.model_validate_json(answer.raise_for_status().content)


def _opened_meanwhile(service: ServiceProcess, key: str) -> None:
    """Open a session in a thread, and ignore that its connection breaks when the service dies."""

    def ask() -> None:
        try:
            _opened(service, key)
        except httpx.HTTPError:
            return

    threading.Thread(target=ask, daemon=True).start()


def _stopped(service: ServiceProcess, view: SessionView) -> SessionView:
    answer = service.http.post(f"{_PATH}/{view.session_id}/stop", timeout=90)
    return SessionView.model_validate_json(answer.raise_for_status().content)


def _call(service: ServiceProcess, tool_id: str, call_id: str, **params: JsonValue) -> ToolResult:
    body = {"tool_id": tool_id, "params": params}
    return ToolResult.model_validate_json(service.http.post("/run_tool", json=body, headers={"X-Call-Id": call_id}, timeout=90).content)


def _called_meanwhile(service: ServiceProcess, tool_id: str, call_id: str, **params: JsonValue) -> None:
    """Make a call in a thread, and ignore that its connection breaks when the service dies."""

    def ask() -> None:
        with suppress(httpx.HTTPError):
            _call(service, tool_id, call_id, **params)

    threading.Thread(target=ask, daemon=True).start()


def _run_meanwhile(service: ServiceProcess, view: SessionView) -> None:
    """Make a run in a thread, and ignore that its connection breaks when the service dies."""
    nodes: JsonValue = [
        {"id": 1, "type": "LoadImage", "inputs": {"image": "dot.png"}},
        {"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0]}},
    ]
    params: JsonValue = {"workflow": {"nodes": nodes}, "images": [{"name": "dot.png", "base64": "YQ=="}]}

    def ask() -> None:
        with suppress(httpx.HTTPError):
            service.http.post(f"{_PATH}/{view.session_id}/run", json={"params": params}, timeout=90)

    threading.Thread(target=ask, daemon=True).start()


def _rented_by_others(runcomfy: RunComfyServer) -> JsonValue:
    """A server of the same account that the service did not launch."""
    account = runcomfy.account
    order = {"workflow_version_id": account.versions[0], "server_type": "medium", "estimated_duration": 600}
    headers = {"Authorization": f"Bearer {account.key}"}
    return (
        httpx.post(f"{runcomfy.api_url}/users/{account.user_id}/servers", json=order, headers=headers)
        .raise_for_status()
        .json()["server_id"]
    )


def _told_of(service: Shared) -> list[JsonValue]:
    """The servers that alerts of this test name."""
    return [alert["item"] for alert in _alerts(service)[service.before[1] :] if "item" in alert]


def _alerts(service: ServiceProcess) -> list[dict[str, JsonValue]]:
    found = rows(service, "SELECT details FROM events WHERE event_type = ? ORDER BY rowid", EventType.SESSION_ALERT.value)
    return [json.loads(str(details)) for (details,) in found]


def _session(service: Shared) -> SessionView:
    """The session that the test has opened."""
    (view,) = [view for view in _listed(service) if view.session_id not in service.before[0]]
    return view


def _listed(service: ServiceProcess) -> tuple[SessionView, ...]:
    return SessionListing.model_validate_json(service.http.get(_PATH).raise_for_status().content).sessions


def _counts(runcomfy: RunComfyServer) -> tuple[JsonValue, JsonValue, JsonValue]:
    ledger = runcomfy.ledger()
    return ledger["launched"], ledger["stopped"], ledger["running"]


@pytest.mark.long
def test_a_session_that_is_ready_outlives_its_service_and_is_stopped_once(service: Shared, runcomfy: RunComfyServer) -> None:
    view = _opened(service, "ready")
    assert view.state is SessionState.READY
    service.kill()
    service.start()
    again = _opened(service, "ready")
    assert (again.session_id, again.launched) == (view.session_id, view.launched)
    run = service.http.post(f"{_PATH}/{view.session_id}/run", json={"params": {"workflow": {"nodes": []}, "server_id": "of-others"}})
    assert (run.status_code, run.json()["error_type"]) == (422, "validation_error")
    runcomfy.fail(Fault(kind="500", at="stop"))
    ended = wait_until(lambda: stopped if (stopped := _stopped(service, view)).ended_at else None, "it is stopped")
    assert (ended.state, ended.end) == (SessionState.STOPPED, SessionEnd.ASKED)
    assert _counts(runcomfy) == (1, 1, [])


def test_a_session_that_a_restored_database_does_not_know_is_shown_again_and_stopped(
    service: Shared, runcomfy: RunComfyServer, tmp_path: Path
) -> None:
    """The backup is older than the session."""
    file, backup = service.state / "tool-agent.db", tmp_path / "backup.db"
    with closing(sqlite3.connect(file)) as database, closing(sqlite3.connect(backup)) as copy:
        database.backup(copy)
    view = _opened(service, "restored")
    service.kill()
    for damaged in file.parent.glob(f"{file.name}*"):
        damaged.unlink()
    shutil.copyfile(backup, file)
    service.start()
    where = f"{_PATH}/{view.session_id}"
    shown = wait_until(lambda: found if (found := service.http.get(where)).status_code == HTTPStatus.OK else None, "it has its row again")
    assert shown.json()["launched"] == view.launched
    assert _stopped(service, view).state is SessionState.STOPPED
    assert _counts(runcomfy) == (1, 1, [])


def test_a_service_that_dies_while_it_launches_launches_nothing_twice(service: Shared, runcomfy: RunComfyServer) -> None:
    _opened_meanwhile(service, "launching")
    wait_until(lambda: runcomfy.ledger()["launched"], "the provider launches")
    service.kill()
    service.start()
    view = _opened(service, "launching")
    assert view.state is SessionState.READY, view.error
    assert _stopped(service, view).state is SessionState.STOPPED
    assert _counts(runcomfy) == (1, 1, [])


@pytest.mark.long
def test_a_server_that_never_becomes_ready_is_stopped_though_the_service_died_in_its_launch(
    service: Shared, runcomfy: RunComfyServer
) -> None:
    runcomfy.fail(Fault(kind="never_ready"))
    _opened_meanwhile(service, "never ready")
    wait_until(lambda: runcomfy.ledger()["launched"], "the provider launches")
    service.kill()
    service.start()
    view = _session(service)
    ended = wait_until(lambda: stopped if (stopped := _stopped(service, view)).ended_at else None, "it is stopped")
    assert (ended.state, ended.end) == (SessionState.STOPPED, SessionEnd.ASKED)
    assert _counts(runcomfy) == (1, 1, [])


@pytest.mark.parametrize("node_s", [5.0])
def test_a_session_whose_service_dies_in_a_run_is_stopped_though_nobody_asks_and_servers_of_others_are_told_of(
    service: Shared, runcomfy: RunComfyServer
) -> None:
    answer = service.http.post(_PATH, json={"params": {}, "lease_s": 5}, timeout=90)
    view = SessionView.model_validate_json(answer.raise_for_status().content)
    assert isinstance(view.launched, dict)
    queue = f"{runcomfy.url}/comfy/{view.launched['server_id']}/queue"
    _run_meanwhile(service, view)
    wait_until(lambda: httpx.get(queue).json()["queue_running"], "the run goes on")
    others = _rented_by_others(runcomfy)
    service.kill()
    service.start()
    ended = wait_until(lambda: one if (one := _session(service)).ended_at else None, "the session has ended", 90)
    assert (ended.session_id, ended.state, ended.end) == (view.session_id, SessionState.STOPPED, SessionEnd.LEASE_EXPIRED)
    wait_until(lambda: _told_of(service) == [{"server_id": others}], "the server of others is told of")
    assert _counts(runcomfy) == (2, 1, [others])


def test_a_launch_that_somebody_makes_alone_is_adopted_and_its_stop_is_the_sessions(service: Shared, runcomfy: RunComfyServer) -> None:
    launched = _call(service, _LAUNCH, "call-launched1")
    assert isinstance(launched.result, dict), launched.error
    server_id = launched.result["server_id"]
    view = _session(service)
    assert launched.metadata["session_id"] == view.session_id
    ran = _call(service, _RUN, "call-ran-alone", server_id=server_id, workflow=_NOTHING)
    assert ran.metadata["session_id"] == view.session_id
    shown = f"{_PATH}/{view.session_id}"
    wait_until(lambda: SessionView.model_validate_json(service.http.get(shown).content).runs == 1, "the session knows of the run")
    stopped = _call(service, _STOP, "call-stopped1", container_id=server_id)
    assert (stopped.status, stopped.metadata["session_id"]) == ("success", view.session_id)
    ended = wait_until(lambda: one if (one := _session(service)).ended_at else None, "the session has stopped")
    assert (ended.state, ended.end, ended.launch_call_id) == (SessionState.STOPPED, SessionEnd.ASKED, "call-launched1")
    assert _counts(runcomfy) == (1, 1, [])
    assert _call(service, _LAUNCH, "call-launched1").result == launched.result
    assert _counts(runcomfy) == (1, 1, [])


@pytest.mark.long
def test_an_adopted_launch_whose_service_dies_is_made_and_stopped_once(service: Shared, runcomfy: RunComfyServer) -> None:
    _called_meanwhile(service, _LAUNCH, "call-launching")
    wait_until(lambda: runcomfy.ledger()["launched"], "the provider launches")
    service.kill()
    service.start()
    launched = _call(service, _LAUNCH, "call-launching")
    view = wait_until(lambda: one if (one := _session(service)).state is SessionState.READY else None, "the session is ready")
    assert launched.metadata["session_id"] == view.session_id
    assert isinstance(view.launched, dict)
    _called_meanwhile(service, _STOP, "call-stopping", server_id=view.launched["server_id"])
    service.kill()
    service.start()
    _call(service, _STOP, "call-stopping", server_id=view.launched["server_id"])
    wait_until(lambda: _session(service).ended_at, "the session has stopped")
    assert _counts(runcomfy) == (1, 1, [])


@pytest.mark.long
def test_an_adopted_launch_is_a_task_that_can_be_cancelled(service: Shared, runcomfy: RunComfyServer) -> None:
    body: JsonValue = {"tool_id": _LAUNCH, "params": {}, "mode": "async"}
    task_id = service.http.post("/run_tool", json=body, headers={"X-Call-Id": "call-cancelled"}).raise_for_status().json()["task_id"]
    wait_until(lambda: runcomfy.ledger()["launched"], "the provider launches")
    assert service.http.get(f"/tasks/{task_id}").json()["status"] in {"pending", "running"}
    assert service.http.post(f"/tasks/{task_id}/cancel").status_code == HTTPStatus.ACCEPTED
    ended = wait_until(lambda: one if (one := _session(service)).ended_at else None, "the session has ended", 120)
    assert ended.launch_call_id == task_id
    told = wait_until(lambda: one if (one := service.http.get(f"/tasks/{task_id}").json())["result"] else None, "the call has ended")
    assert told["result"]["metadata"]["session_id"] == ended.session_id
    assert _counts(runcomfy) == (1, 1, [])


@pytest.mark.long
def test_a_lease_that_nobody_renews_is_over(service: Shared, runcomfy: RunComfyServer) -> None:
    answer = service.http.post(_PATH, json={"params": {}, "lease_s": 3}, timeout=90)
    view = SessionView.model_validate_json(answer.raise_for_status().content)
    assert view.lease_ends_at is not None
    renewed = SessionView.model_validate_json(service.http.post(f"{_PATH}/{view.session_id}/renew").raise_for_status().content)
    assert renewed.lease_ends_at is not None
    assert renewed.lease_ends_at >= view.lease_ends_at
    ended = wait_until(lambda: one if (one := _session(service)).ended_at else None, "the session has ended")
    assert (ended.state, ended.end) == (SessionState.STOPPED, SessionEnd.LEASE_EXPIRED)
    assert service.http.post(f"{_PATH}/{view.session_id}/renew").status_code == HTTPStatus.CONFLICT
    assert _counts(runcomfy) == (1, 1, [])


def test_an_adopted_launch_whose_workflows_are_terminated_is_stopped_once(service: Shared, runcomfy: RunComfyServer) -> None:
    call_id = service.begin(_LAUNCH, {})
    wait_until(lambda: runcomfy.ledger()["launched"], "the provider launches")
    view = _session(service)
    for workflow_id in (call_id, f"group/{view.group_id}/{view.session_id}"):
        where = ["--workflow-id", workflow_id, "--address", service.temporal_address]
        subprocess.run([temporal_binary(), "workflow", "terminate", *where], capture_output=True, check=True, timeout=60)
    service.kill()
    service.start()
    ended = wait_until(lambda: one if (one := _session(service)).ended_at else None, "the session has ended", 90)
    assert (ended.end, ended.launch_call_id) == (SessionEnd.CANCELLED, call_id)
    assert _counts(runcomfy) == (1, 1, [])


@pytest.mark.long
def test_the_command_line_opens_a_session_with_a_lease_and_renews_it(service: Shared, runcomfy: RunComfyServer) -> None:
    def toolagent(*words: str) -> SessionView:
        script = str(Path(sys.executable).with_name("toolagent"))
        command = [script, "group", *words, "--json"]
        done = subprocess.run(command, env={"TOOL_AGENT_URL": service.api_url}, capture_output=True, check=True, timeout=90)
        return SessionView.model_validate_json(done.stdout)

    opened = toolagent("open", "runcomfy_lifecycle", "--lease", "60")
    renewed = toolagent("renew", "runcomfy_lifecycle", opened.session_id)
    assert opened.lease_ends_at is not None
    assert renewed.lease_ends_at is not None
    assert renewed.lease_ends_at > opened.lease_ends_at
    assert toolagent("stop", "runcomfy_lifecycle", opened.session_id).state is SessionState.STOPPED


def test_while_the_only_host_drains_nothing_is_launched_and_what_was_is_stopped(service: Shared, runcomfy: RunComfyServer) -> None:
    view = _opened(service, "before the drain")
    [host] = HostListing.model_validate_json(service.http.get("/hosts").content).hosts
    drain = HostDrain.model_validate_json(service.http.post(f"/hosts/{host.host}/drain").content)
    try:
        wait_until(lambda: service.http.get(f"/hosts/{host.host}/drain").json()["is_drained"], "nothing is left on it")
        refused = _opened(service, "after the drain")
        stopped = _stopped(service, view)
    finally:
        service.http.delete(f"/hosts/{host.host}/drain").raise_for_status()
    assert (view.host, len(drain.warnings), drain.sessions) == (host.host, 1, 0), "its machine is not on the host"
    assert refused.error is not None
    assert (refused.state, refused.error.type, refused.error.details) == (
        SessionState.FAILED,
        ErrorType.UNAVAILABLE,
        {"sent": False, "draining": [host.host]},
    )
    assert stopped.state is SessionState.STOPPED
    assert _counts(runcomfy) == (1, 1, [])
