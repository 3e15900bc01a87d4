"""What a `kill -9` of the service interrupts: calls of MCP clients, which are found again and made once, and a login at an MCP server."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.mcp_client import JSON_RPC, META, NEW, OLD, TASKS, messages_of
from tests.mcp_servers.authorized import Authorized, authorized
from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ToolResult

pytestmark = pytest.mark.timeout(300)

_SESSION_CLIENT = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


@dataclass
class Aftermath:
    """The rest of an interrupted stream, a task, the effects of each call, and the answers after a login."""

    rest: list[dict[str, Any]]
    task: dict[str, Any]
    acted: tuple[int, int]
    page: httpx.Response
    who: ToolResult


@pytest.fixture
def site() -> Generator[Authorized]:
    with authorized() as site:
        yield site


@pytest.fixture
def aftermath(make_service: MakeService, effects: Path, site: Authorized) -> Aftermath:
    service = make_service(MCP_TASK_AFTER_S="0.5", MCP_ALLOW="127.0.0.1")
    service.start()
    go_on = effects.with_name("go on")
    session_id = _post(service, {"method": "initialize", "params": _SESSION_CLIENT}).headers["mcp-session-id"]
    own = {"MCP-Protocol-Version": OLD, "Mcp-Session-Id": session_id}
    task_id = _result(_modern(service, "tools/call", name="once", arguments=_arguments(effects, "as a task", go_on)))["taskId"]
    event_id = _interrupted(service, own, _arguments(effects, "in a stream", go_on))
    for name in ("in a stream", "as a task"):
        wait_for_effect(effects, name)
    login_url = service.http.post("/mcp_servers", json={"name": "far", "url": site.url}).raise_for_status().json()["login_url"]
    back = httpx.get(login_url).headers["location"].partition("?")[2]
    service.kill()
    go_on.touch()
    service.start()
    page = service.http.get(f"/oauth/callback?{back}")
    _, who = run_tool(service.http, "far_whoami", {})
    rest = service.http.get("/mcp", headers={**JSON_RPC, **own, "Last-Event-ID": event_id}, timeout=120)
    task = wait_until(lambda: found if (found := _task(service, task_id))["status"] != "working" else None, "the task has ended", 120)
    acted = (count_of(effects, "in a stream"), count_of(effects, "as a task"))
    return Aftermath(messages_of(rest), task, acted, page, who)


@pytest.mark.promise("mcp-goes-on")
def test_a_stream_a_task_and_a_login_go_on_after_a_kill(aftermath: Aftermath, site: Authorized) -> None:
    assert aftermath.acted == (1, 1)
    assert [message["id"] for message in aftermath.rest] == ["long"]
    assert "toolagent/call_id" in aftermath.rest[0]["result"]["_meta"]
    assert aftermath.task["status"] in {"completed", "failed"}
    assert (aftermath.page.status_code, len(site.doorman.clients)) == (200, 1)
    assert f"client {next(iter(site.doorman.clients))} with ***" in str(aftermath.who.result)


def _arguments(effects: Path, name: str, go_on: Path) -> dict[str, Any]:
    return {"effects": str(effects), "line": name, "until": str(go_on)}


def _post(service: ServiceProcess, message: dict[str, Any], headers: dict[str, str] | None = None) -> httpx.Response:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message})
    return service.http.post("/mcp", content=body, headers={**JSON_RPC, **(headers or {})}).raise_for_status()


def _modern(service: ServiceProcess, method: str, **params: Any) -> httpx.Response:
    meta: dict[str, Any] = {f"{META}/protocolVersion": NEW, f"{META}/clientCapabilities": {"extensions": {TASKS: {}}}}
    headers = {"MCP-Protocol-Version": NEW, "Mcp-Method": method, "Mcp-Name": params.get("name") or params["taskId"]}
    return _post(service, {"method": method, "params": {**params, "_meta": meta}}, headers)


def _task(service: ServiceProcess, task_id: str) -> dict[str, Any]:
    return _result(_modern(service, "tasks/get", taskId=task_id))


def _result(answer: httpx.Response) -> dict[str, Any]:
    return messages_of(answer)[-1]["result"]


def _interrupted(service: ServiceProcess, own: dict[str, str], arguments: dict[str, Any]) -> str:
    """The id of the first event of a call that goes on after its connection is closed."""
    body = {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": {"name": "once", "arguments": arguments}}
    with service.http.stream("POST", "/mcp", content=json.dumps(body), headers={**JSON_RPC, **own}) as answer:
        return next(line.removeprefix("id: ") for line in answer.iter_lines() if line.startswith("id: "))
