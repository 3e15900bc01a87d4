"""Sessions of a group through a real service that is killed: what was rented is given back, once."""

import threading
from collections.abc import Generator

import httpx
import pytest
from pydantic import JsonValue

from tests.system.conftest import MakeService
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.hosts import HostDrain, HostListing
from toolagent.contracts.sessions import SessionEnd, SessionState, SessionView
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.runcomfy_server import RunComfyServer

pytestmark = pytest.mark.timeout(240)

_PATH = "/groups/runcomfy_lifecycle/sessions"
_LAUNCH_S = 2.0


@pytest.fixture
def runcomfy() -> Generator[RunComfyServer]:
    with RunComfyServer(start_s=_LAUNCH_S) as server:
        yield server


@pytest.fixture
def service(make_service: MakeService, runcomfy: RunComfyServer) -> ServiceProcess:
    account = runcomfy.account
    service = make_service(RUNCOMFY_URL=runcomfy.api_url, SECRET_RUNCOMFY_USER_ID=account.user_id, SECRET_RUNCOMFY_API_KEY=account.key)
    service.start()
    return service


def _opened(service: ServiceProcess, key: str) -> SessionView:
    answer = service.http.post(_PATH, json={"params": {}}, headers={"Idempotency-Key": key}, timeout=90)
    return SessionView.model_validate_json(answer.raise_for_status().content)


def _opened_meanwhile(service: ServiceProcess, key: str) -> None:
    """By a caller whose service dies."""

    def ask() -> None:
        try:
            _opened(service, key)
        except httpx.HTTPError:
            return

    threading.Thread(target=ask, daemon=True).start()


def _stopped(service: ServiceProcess, view: SessionView) -> SessionView:
    answer = service.http.post(f"{_PATH}/{view.session_id}/stop", timeout=90)
    return SessionView.model_validate_json(answer.raise_for_status().content)


def _counts(runcomfy: RunComfyServer) -> tuple[JsonValue, JsonValue, JsonValue]:
    ledger = runcomfy.ledger()
    return ledger["launched"], ledger["stopped"], ledger["running"]


def test_a_session_that_is_ready_outlives_its_service_and_is_stopped_once(service: ServiceProcess, runcomfy: RunComfyServer) -> None:
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


def test_a_service_that_dies_while_it_launches_launches_nothing_twice(service: ServiceProcess, runcomfy: RunComfyServer) -> None:
    _opened_meanwhile(service, "launching")
    wait_until(lambda: runcomfy.ledger()["launched"], "the provider launches")
    service.kill()
    service.start()
    view = _opened(service, "launching")
    assert view.state is SessionState.READY, view.error
    assert _stopped(service, view).state is SessionState.STOPPED
    assert _counts(runcomfy) == (1, 1, [])


def test_while_the_only_host_drains_nothing_is_launched_and_what_was_is_stopped(service: ServiceProcess, runcomfy: RunComfyServer) -> None:
    view = _opened(service, "before the drain")
    [host] = HostListing.model_validate_json(service.http.get("/hosts").content).hosts
    drain = HostDrain.model_validate_json(service.http.post(f"/hosts/{host.host}/drain").content)
    assert (view.host, len(drain.warnings), drain.sessions) == (host.host, 1, 0), "its machine is not on the host"
    wait_until(lambda: service.http.get(f"/hosts/{host.host}/drain").json()["is_drained"], "nothing is left on it")
    refused = _opened(service, "after the drain")
    assert refused.error is not None
    assert (refused.state, refused.error.type, refused.error.details) == (
        SessionState.FAILED,
        ErrorType.UNAVAILABLE,
        {"sent": False, "draining": [host.host]},
    )
    assert _stopped(service, view).state is SessionState.STOPPED
    assert _counts(runcomfy) == (1, 1, [])
