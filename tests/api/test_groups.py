"""Groups and their sessions over HTTP."""

from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
import pytest_asyncio

from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from tests.api.conftest import House, browse
from tests.workflows.session_paths import group_of
from toolagent.client.failures import SessionUnreachableError
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent.contracts.groups import VerifyProbe
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.records import CallRecord
from toolagent.contracts.sessions import OpenSession, SessionEnd, SessionState, SessionView
from toolagent.contracts.sources import BuiltinSource
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import failed
from toolagent_service.groups.sessions import call_id_in

_PATH = "/groups/servers/sessions"
_AT = datetime(2026, 3, 26, tzinfo=UTC)


@pytest_asyncio.fixture
async def grouped(stocked: House) -> House:
    await stocked.groups.replace([group_of(), ToolGroup(group_id="advice", name="Advice", tool_ids=("echo",))])
    return stocked


async def _opened(house: House, database: Database, **headers: str) -> httpx.Response:
    """A session in the database, as its workflow would write it."""
    answer = await house.http.post(_PATH, json={"params": {"size": 1}}, headers=headers)
    request = house.client.sessions.opened[-1]
    await SessionTable(database).open(request, house.client.sessions.views[request.session_id], None)
    return answer


async def test_groups_are_listed_and_shown(grouped: House) -> None:
    listed = (await grouped.http.get("/groups")).json()["groups"]
    assert [one["group_id"] for one in listed] == ["advice", "servers"]
    assert (await grouped.http.get("/groups/servers")).json() == listed[1]


async def test_a_session_is_opened_used_shown_and_stopped(grouped: House, database: Database) -> None:
    answer = await _opened(grouped, database)
    assert (answer.status_code, answer.json()["state"]) == (201, "ready")
    where = answer.headers["Location"]
    assert where == f"{_PATH}/{answer.json()['session_id']}"
    ran = await grouped.http.post(f"{where}/run", json={"params": {"a": 1}, "key": "one"})
    assert (ran.status_code, ran.json()["result"]) == (200, {"a": 1})
    shown = (await grouped.http.get(where)).json()
    assert (shown["launched"], shown["runs"]) == ({"size": 1}, 1)
    assert len((await grouped.http.get(f"{_PATH}?living=true")).json()["sessions"]) == 1
    stopped = [(await grouped.http.post(f"{where}/stop")).json()["state"] for _ in range(2)]
    assert stopped == ["stopped", "stopped"]
    over = await grouped.http.post(f"{where}/run", json={})
    assert (over.status_code, over.json()["type"]) == (409, "session_over")


async def test_a_lease_is_taken_with_the_session_and_renewed(grouped: House, database: Database) -> None:
    answer = await grouped.http.post(_PATH, json={"lease_s": 60})
    request = grouped.client.sessions.opened[-1]
    await SessionTable(database).open(request, grouped.client.sessions.views[request.session_id], None)
    assert (request.lease_s, answer.json()["lease_ends_at"] is None) == (60, False)
    where = answer.headers["Location"]
    renewed = await grouped.http.post(f"{where}/renew")
    assert (renewed.status_code, renewed.json()["state"]) == (200, "ready")
    await grouped.http.post(f"{where}/stop")
    over = await grouped.http.post(f"{where}/renew")
    assert (over.status_code, over.json()["type"]) == (409, "session_over")


async def test_a_lease_is_kept_for_who_waits_for_the_launch_until_that_one_has_gone(grouped: House) -> None:
    await grouped.http.post(_PATH, json={"lease_s": 60})
    is_gone = grouped.client.sessions.is_gone
    assert is_gone is not None
    assert await is_gone(), "it has its answer"


async def test_the_stop_of_a_session_that_has_lost_its_workflow_begins_at_once(grouped: House, database: Database) -> None:
    answer = await _opened(grouped, database)
    del grouped.client.sessions.views[answer.json()["session_id"]]
    stopped = (await grouped.http.post(f"{answer.headers['Location']}/stop")).json()
    assert (stopped["session_id"], stopped["state"], stopped["end"]) == (answer.json()["session_id"], "stopped", "asked")
    assert stopped["launched"] == {"size": 1}


@pytest.mark.parametrize(
    ("path", "method", "may_be_twice"), [("", "open", True), ("/run", "run", True), ("/renew", "renew", False), ("/stop", "stop", False)]
)
async def test_where_nothing_answers_it_is_said_what_asking_again_does(
    grouped: House, database: Database, monkeypatch: pytest.MonkeyPatch, path: str, method: str, *, may_be_twice: bool
) -> None:
    where = (await _opened(grouped, database)).headers["Location"] if path else _PATH

    async def unanswered(*_: object, **_options: object) -> None:
        raise SessionUnreachableError("Nothing answers for it.")

    monkeypatch.setattr(grouped.client.sessions, method, unanswered)
    answer = await grouped.http.post(f"{where}{path}", json={"params": {"size": 1}} if may_be_twice else None)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert ("Without one it may be done twice." in answer.json()["detail"]) is may_be_twice


async def test_the_same_key_is_the_same_session(grouped: House, database: Database) -> None:
    answers = [await _opened(grouped, database, **{"Idempotency-Key": key}) for key in ("a", "a", "b")]
    first, again, other = (answer.json()["session_id"] for answer in answers)
    assert first == again != other


async def test_a_key_of_a_session_that_has_ended_says_how_it_ended(grouped: House, database: Database) -> None:
    answer = await _opened(grouped, database, **{"Idempotency-Key": "a"})
    stopped = (await grouped.http.post(f"{answer.headers['Location']}/stop")).json()
    again = await grouped.http.post(_PATH, json={"params": {"size": 1}}, headers={"Idempotency-Key": "a"})
    assert (again.status_code, again.json()["session_id"]) == (201, stopped["session_id"])
    await SessionTable(database).note(SessionView.model_validate(stopped))
    last = await grouped.http.post(_PATH, json={"params": {"size": 1}}, headers={"Idempotency-Key": "a"})
    assert last.json()["state"] == "stopped"
    assert len(grouped.client.sessions.opened) == 1


@pytest.mark.parametrize("body", [{"params": {"size": 2}}, {"params": {"size": 1}, "lease_s": 60}, {}], ids=["params", "lease", "none"])
async def test_a_key_that_was_used_for_something_else_is_refused(grouped: House, database: Database, body: dict[str, object]) -> None:
    await _opened(grouped, database, **{"Idempotency-Key": "a"})
    other = await grouped.http.post(_PATH, json=body, headers={"Idempotency-Key": "a"})
    assert (other.status_code, other.json()["type"]) == (409, "idempotency_conflict")


async def test_a_key_of_a_run_is_answered_after_its_session_too(grouped: House, database: Database) -> None:
    where = (await _opened(grouped, database)).headers["Location"]
    session_id = where.rpartition("/")[2]
    call = ToolCall(tool_id="work", params={"a": 1, "server_id": "s"})
    record = CallRecord(
        call_id=call_id_in(session_id, "run one"),
        tool_id="work",
        version="1.0.0",
        fingerprint=fingerprint(call),
        workflow_id=f"group/servers/{session_id}",
        run_id="r",
        created_at=_AT,
    )
    await grouped.calls.settle(record, failed(record.call_id, "work", ToolError(type=ErrorType.TIMEOUT, message="no"), _AT), ())
    ended = {"state": SessionState.STOPPED, "end": SessionEnd.FAILED_STEP, "ended_at": _AT, "launched": {"server_id": "s"}}
    view = grouped.client.sessions.views[session_id].model_copy(update=ended)
    grouped.client.sessions.views[session_id] = view
    await SessionTable(database).note(view)
    same = await grouped.http.post(f"{where}/run", json={"params": {"a": 1}, "key": "one"})
    assert (same.status_code, same.json()["call_id"], same.json()["error_type"]) == (504, record.call_id, "timeout")
    other = await grouped.http.post(f"{where}/run", json={"params": {"a": 2}, "key": "one"})
    assert (other.status_code, other.json()["error"]["details"]["reason"]) == (409, "idempotency_conflict")
    new = await grouped.http.post(f"{where}/run", json={"params": {"a": 1}, "key": "two"})
    said = f"Session {session_id} is stopped. Open another one."
    assert (new.status_code, new.json()["type"], new.json()["detail"]) == (409, "session_over", said)


async def test_a_run_may_name_its_tool_by_another_id(grouped: House, database: Database) -> None:
    registry = ToolRegistry(ToolTable(database), RouteTable(database), {"old_work": "work"})
    await registry.register(ToolManifest(tool_id="work", name="Work"), (BuiltinSource(handler="echo"),))
    grouped.client.sessions.steps = ("work",)
    where = (await _opened(grouped, database)).headers["Location"]
    async with browse(replace(grouped.dependencies, registry=registry)) as http:
        ran = await http.post(f"{where}/run", json={"tool_id": "old_work"})
        wrong = await http.post(f"{where}/run", json={"tool_id": "echo"})
    assert (ran.status_code, ran.json()["tool_id"]) == (200, "work")
    assert (wrong.status_code, wrong.json()["type"]) == (422, "invalid_request")


async def test_a_session_that_found_no_room_may_come_again_with_its_key(grouped: House) -> None:
    first = (await grouped.http.post(_PATH, json={}, headers={"Idempotency-Key": "a"})).json()
    refused = {"state": SessionState.FAILED, "end": SessionEnd.REFUSED, "ended_at": first["opened_at"]}
    views = grouped.client.sessions.views
    views[first["session_id"]] = SessionView.model_validate({**first, **refused})
    assert (await grouped.http.post(_PATH, json={}, headers={"Idempotency-Key": "a"})).status_code == 201
    assert [request.session_id for request in grouped.client.sessions.opened] == [first["session_id"]] * 2


async def test_sessions_of_a_group_that_was_removed_are_listed(grouped: House, database: Database) -> None:
    answer = await _opened(grouped, database)
    await grouped.groups.replace([])
    listed = (await grouped.http.get(_PATH)).json()["sessions"]
    assert [one["session_id"] for one in listed] == [answer.json()["session_id"]]
    assert (await grouped.http.get("/groups/servers")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "said"),
    [
        ("GET", "/groups/server", 404, "group_not_found", "Did you mean servers?"),
        ("POST", "/groups/server/sessions", 404, "group_not_found", "Did you mean servers?"),
        ("GET", "/groups/a%00b", 404, "group_not_found", "There is no group"),
        ("POST", "/groups/advice/sessions", 409, "no_lifecycle", "call its tools one by one"),
        ("GET", f"{_PATH}/session-12345678", 404, "session_not_found", "has no session 'session-12345678'"),
        ("POST", f"{_PATH}/nonsense/run", 404, "session_not_found", "has no session 'nonsense'"),
        ("POST", f"{_PATH}/session-12345678/stop", 404, "session_not_found", "lists them"),
        ("POST", f"{_PATH}/session-12345678/renew", 404, "session_not_found", "lists them"),
        ("GET", f"{_PATH}?living=perhaps", 422, "invalid_request", "living"),
    ],
)
async def test_what_is_not_there_is_said(grouped: House, method: str, path: str, status: int, kind: str, said: str) -> None:
    answer = await grouped.http.request(method, path, json={} if method == "POST" else None)
    assert (answer.status_code, answer.json()["type"]) == (status, kind)
    assert said in answer.json()["detail"]


async def test_params_that_look_for_a_launch_begin_no_session(grouped: House) -> None:
    verify = VerifyProbe(tool_id="launch", asks="launched_by")
    await grouped.groups.replace([group_of().model_copy(update={"verify": verify})])
    answer = await grouped.http.post(_PATH, json={"params": {"launched_by": "call-12345678"}})
    assert (answer.status_code, answer.json()["type"]) == (422, "invalid_request")
    assert "params.launched_by" in answer.json()["detail"]
    assert (await grouped.http.post(_PATH, json={"params": {"launched_by": None}})).status_code == 201


@pytest.mark.parametrize("body", [{"parms": {}}, {"params": []}, {"caller": {"caller_id": 3}}, {"lease_s": 0}, {"lease_s": 86_401}])
async def test_a_body_of_the_wrong_form_names_its_field(grouped: House, body: dict[str, object]) -> None:
    answer = await grouped.http.post(_PATH, json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "invalid_request")
    assert answer.json()["errors"][0]["field"].split(".")[0] == next(iter(body))
    assert grouped.client.sessions.opened == list[OpenSession]()
