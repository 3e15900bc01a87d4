"""A small real server that speaks the service's protocol, and the command line to try on it."""

import asyncio
import hashlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import pytest
import uvicorn
from fastapi import Depends, FastAPI, File, Request, Response, UploadFile
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import JsonValue
from typer.testing import CliRunner, Result

from tests.system.waiting import wait_until
from toolagent.cli.app import app as command_line

API_KEY = "the-right-key"
BOUND_S = 20.0
TOOLS: dict[str, dict[str, JsonValue]] = {
    "echo": {
        "name": "Echo",
        "description": "Gives back what it is [bold]given[/bold].",
        "category": "text",
        "input_schema": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "description": "Any text."},
                "count": {"type": "integer", "default": 1},
                "ratio": {"type": "number"},
                "loud": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "extra": {"type": "object"},
            },
        },
    },
    "stitcher": {
        "name": "Stitcher",
        "category": "image",
        "input_schema": {
            "type": "object",
            "required": ["images"],
            "properties": {
                "images": {"type": "array", "items": {"type": "string", "format": "file-path"}},
                "logo": {"type": "string", "format": "file-path"},
            },
        },
    },
    "refuser": {"name": "Refuser", "category": "text"},
    "breaker": {"name": "Breaker", "category": "text"},
    "endless": {"name": "Endless", "category": "text"},
}


class WrongKey(Exception):
    """The request has no key, or a wrong one."""


class Service:
    """The state of the server, and the requests it got.

    `asked` is set when a call arrives; the answer waits for `may_accept`. `followed` is set when a client has looked at an endless task.
    """

    def __init__(self) -> None:
        self.url = ""
        self.well = True
        self.needs_key = False
        self.is_away = False
        self.left: int | None = None
        self.is_undone = False
        self.calls: list[dict[str, JsonValue]] = []
        self.batches: list[dict[str, JsonValue]] = []
        self.breaks_after = 0
        self.ranges: list[str] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        self.tasks: dict[str, dict[str, JsonValue]] = {}
        self.asked, self.may_accept, self.followed = threading.Event(), threading.Event(), threading.Event()
        self.may_accept.set()
        self.cancelled: list[str] = []
        self.documents: dict[str, JsonValue] = {"registry.json": {"version": "2.0", "tools": []}, "groups.json": {"groups": []}}

    async def check_key(self, request: Request) -> None:
        if self.needs_key and request.headers.get("authorization") != f"Bearer {API_KEY}":
            raise WrongKey

    async def health(self) -> Response:
        checks = {"database": "ok", "temporal": "ok" if self.well else "nothing answers"}
        return JSONResponse({"status": "ok" if self.well else "unavailable", "checks": checks}, 200 if self.well else 503)

    async def list_tools(self) -> Response:
        faults = [{"file": "tools/bad.json", "field": "version", "reason": "is not a version"}]
        shown = [summary(tool_id) for tool_id in TOOLS]
        return JSONResponse({"backend_runtimes": [], "groups": [], "tools": shown, "catalog_faults": faults})

    async def search(self, body: dict[str, str | int]) -> Response:
        found = [match(tool_id) for tool_id in TOOLS if str(body["keyword"]) in tool_id]
        return JSONResponse({"tools": found, "total": len(found)})

    async def list_routes(self) -> Response:
        running = {"tool_id": "stitcher", "state": "running", "pid": 4711, "port": 9001, "host": "here", "started_at": now()}
        return JSONResponse({"tools": [running, {"tool_id": "echo", "state": "stopped"}]})

    async def show_tool(self, tool_id: str) -> Response:
        if tool_id not in TOOLS:
            return problem(404, "Not Found", f"There is no tool {tool_id!r}; the nearest are: echo.")
        return JSONResponse({"tool_id": tool_id, **TOOLS[tool_id], "sources": [], "route": {"tool_id": tool_id, "state": "stopped"}})

    async def control(self, tool_id: str) -> Response:
        return JSONResponse({"tool_id": tool_id, "state": "running", "port": 9001, "pid": 4711, "endpoint": "http://127.0.0.1:9001"})

    async def stop_tool(self, tool_id: str) -> Response:
        return JSONResponse({"tool_id": tool_id, "state": "stopped"})

    async def run_tool(self, call: dict[str, JsonValue]) -> Response:
        self.calls.append(call)
        self.asked.set()
        await asyncio.to_thread(self.may_accept.wait, BOUND_S)
        if unknown := set(call) - {"tool_id", "params", "version", "mode", "timeout_s", "idempotency_key"}:
            return problem(
                422, "Unprocessable", "Unknown fields.", [{"field": name, "message": "is not known"} for name in sorted(unknown)]
            )
        if call["tool_id"] == "refuser":
            issues: list[JsonValue] = [{"path": "$.width", "message": "is too small"}, {"path": "$.height", "message": "is missing"}]
            return JSONResponse(failure("validation_error", "Two things are wrong.", issues), 422)
        if call["mode"] == "sync":
            return JSONResponse(outcome(call))
        task_id = f"call-{len(self.tasks):08d}"
        self.tasks[task_id] = {"task_id": task_id, "status": "pending", "tool_id": call["tool_id"], "call": call, "looks": 0}
        return JSONResponse({"task_id": task_id, "status": "pending"}, 202, {"X-Call-Id": task_id})

    async def show_task(self, task_id: str) -> Response:
        if task_id not in self.tasks:
            return problem(404, "Not Found", f"There is no task {task_id!r}.")
        task = self.tasks[task_id]
        return JSONResponse(task if "call" not in task else looked_at(self, task))

    async def cancel(self, task_id: str) -> Response:
        self.cancelled.append(task_id)
        self.tasks[task_id] |= {"status": "cancelled", "result": failure("cancelled", "The call was cancelled.")}
        return JSONResponse(self.tasks[task_id], 202)

    async def store(self, file: Annotated[UploadFile, File()]) -> Response:
        content = await file.read()
        digest = hashlib.sha256(content).hexdigest()
        file_id = f"file_{digest[:32]}"
        self.files[file_id] = (file.filename or "", content)
        stored = {"file_id": file_id, "name": file.filename, "media_type": "x/y", "size": len(content), "sha256": digest}
        return JSONResponse({**stored, "created_at": now()}, 201)

    async def run_tools(self, batch: dict[str, JsonValue]) -> Response:
        """All calls end at once. The batch is a task."""
        calls = batch["calls"]
        assert isinstance(calls, list)
        self.batches.append(batch)
        ended: list[JsonValue] = []
        for call in calls:
            assert isinstance(call, dict)
            task_id = f"call-{len(self.tasks):08d}"
            self.tasks[task_id] = {"task_id": task_id, "status": "pending", "tool_id": call["tool_id"], "call": call, "looks": 2}
            state = "error" if call["tool_id"] == "breaker" else "success"
            ended.append({"call_id": task_id, "tool_id": call["tool_id"], "state": state})
        view: dict[str, JsonValue] = {"task_id": "batch-00000001", "status": "completed", "ended_at": now(), "calls": ended}
        self.tasks["batch-00000001"] = view
        return JSONResponse({"task_id": "batch-00000001", "status": "pending"}, 202)

    async def fetch(self, file_id: str, request: Request) -> Response:
        """Serves ranges. Breaks off after `breaks_after` bytes."""
        if file_id not in self.files:
            return problem(404, "Not Found", f"There is no file {file_id!r}.")
        name, content = self.files[file_id]
        headers = {"content-disposition": f'attachment; filename="{name}"'} if name else {}
        asked = request.headers.get("range", "")
        self.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-") or 0)
        if start:
            headers["content-range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if start >= len(content):
            return Response(status_code=416, headers={"content-range": f"bytes */{len(content)}"})
        headers["content-length"] = str(len(content) - start)
        status = 206 if start else 200
        return StreamingResponse(self._pieces(content[start:]), status, headers, media_type="image/png")

    async def _pieces(self, content: bytes) -> AsyncIterator[bytes]:
        if self.breaks_after and len(content) > self.breaks_after:
            yield content[: self.breaks_after]
            raise ConnectionAbortedError
        yield content

    async def show_versions(self, tool_id: str) -> Response:
        return JSONResponse(versions_of(tool_id, "1.1.0"))

    async def show_usage(self, tool_id: str, hours: float | None = None) -> Response:
        calls = 3 if hours else 2_000
        return JSONResponse({"tool_id": tool_id, "calls": calls, "error_rate": 0.25, "errors": {"timeout": 1}, "p95_s": 0.1234})

    async def activate(self, tool_id: str, version: str) -> Response:
        return JSONResponse(versions_of(tool_id, version))

    async def list_hosts(self) -> Response:
        return JSONResponse({"hosts": [self._host("host-1"), {**self._host("host-2"), "is_alive": False}]})

    async def drain(self, host: str, request: Request) -> Response:
        """Each look finds fewer calls on the host."""
        if host != "host-1":
            return problem(404, "Not Found", f"There is no host {host!r}.")
        match request.method:
            case "POST":
                self.left = 3
            case "DELETE":
                self.left = None
            case _:
                self.left = None if self.is_undone else max((self.left or 0) - 1, 0)
        is_drained = self.left == 0
        counts = {"calls": self.left or 0, "tools": 0 if is_drained else 1, "sessions": 0, "tasks": 0}
        warnings: list[JsonValue] = ["No other host takes calls."] if request.method == "POST" else []
        return JSONResponse({"host": self._host(host), **counts, "is_drained": is_drained, "warnings": warnings})

    def _host(self, host: str) -> dict[str, JsonValue]:
        said: dict[str, JsonValue] = {"started_at": now(), "seen_at": now(), "draining_since": None if self.left is None else now()}
        return {"host": host, "instance": "i", "origin": "o", "buckets": {"default": 4}, "calls": {"default": 2}, "tools": 1, **said}

    async def system_status(self) -> Response:
        if self.is_away:
            return problem(503, "Service Unavailable", "The database does not answer now; ask again.")
        coding: dict[str, JsonValue] = {"running_count": 1, "running_task_ids": ["task-1"], "queued_count": 0, "recent_tasks": []}
        stop: dict[str, JsonValue] = {"session_id": "session-0123456789abcdef", "group_id": "servers", "attempts": 4}
        left: dict[str, JsonValue] = {"group_id": "servers", "reason": "It is left alone.", "item": {"server_id": "s-1"}}
        told: dict[str, JsonValue] = {
            "tools": {"total": 5, "active": 4},
            "coding_agent": coding,
            "groups": {"total": 2, "with_lifecycle": 1},
            "sessions": {"living": {"ready": 3, "stopping": 1}, "stop_unconfirmed": [stop]},
            "hosts": {"alive": 1, "dead": 1, "draining": 1},
            "warm": [{"tool_id": "stitcher", "state": "running", "host": "here", "since": now()}],
            "under_repair": [{"tool_id": "breaker", "task_id": "task-1", "status": "running"}],
            "alerts": [{"event_id": "e", "event_type": "session_alert", "tool_id": "stop", "at": now(), "details": left}],
        }
        return JSONResponse(told)

    async def audit(self) -> Response:
        said = {
            "installs": ["idna==3.6"],
            "refusals": ["example.org:443: not allowed"],
            "truncated": ["stderr"],
            "advisories": ["idna: X-1"],
        }
        entry = {"at": now(), "action": "build", "tool_id": "custom:a", "version": "1.0.0", "host": "host-1", "outcome": "success"}
        return JSONResponse({"entries": [{**entry, **said, "caller": {"caller_id": "agent-7"}, "duration_s": 1.5}], "more": True})

    async def catalog(self) -> Response:
        return JSONResponse(self.documents)


def versions_of(tool_id: str, active: str) -> dict[str, JsonValue]:
    versions: list[JsonValue] = [
        {"tool_id": tool_id, "version": version, "status": "active", "is_active": version == active, "created_at": now()}
        for version in ("1.0.0", "1.1.0")
    ]
    return {"tool_id": tool_id, "active_version": active, "versions": versions}


def problem(status: int, title: str, detail: str, errors: list[JsonValue] | None = None) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "errors": errors or []}
    return JSONResponse(body, status, media_type="application/problem+json")


def failure(kind: str, message: str, issues: list[JsonValue] | None = None) -> dict[str, JsonValue]:
    return {"status": "error", "error": {"type": kind, "message": message}, "error_type": kind, "validation_errors": issues or []}


def outcome(call: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if call["tool_id"] == "breaker":
        return failure("execution_error", "The tool \x1b[31mbroke\x1b[0m [/red].")
    return {"status": "success", "result": call["params"], "execution_time": 0.1, "tool_id": call["tool_id"]}


def wrong_key(request: Request, error: Exception) -> Response:
    return problem(401, "Unauthorized", "The key is missing or wrong.")


def build(service: Service) -> FastAPI:
    app = FastAPI(dependencies=[Depends(service.check_key)])
    app.add_exception_handler(WrongKey, wrong_key)
    app.add_api_route("/health", service.health)
    app.add_api_route("/tools", service.list_tools)
    app.add_api_route("/search_tools", service.search, methods=["POST"])
    app.add_api_route("/tools/status", service.list_routes)
    app.add_api_route("/tools/{tool_id}", service.show_tool)
    app.add_api_route("/tools/{tool_id}", service.control, methods=["DELETE"])
    app.add_api_route("/tools/{tool_id}/start", service.control, methods=["POST"])
    app.add_api_route("/tools/{tool_id}/stop", service.stop_tool, methods=["POST"])
    app.add_api_route("/run_tool", service.run_tool, methods=["POST"])
    app.add_api_route("/tasks/{task_id}", service.show_task)
    app.add_api_route("/tasks/{task_id}/cancel", service.cancel, methods=["POST"])
    app.add_api_route("/files", service.store, methods=["POST"])
    app.add_api_route("/files/{file_id}", service.fetch)
    app.add_api_route("/run_tools", service.run_tools, methods=["POST"])
    app.add_api_route("/tools/{tool_id}/versions", service.show_versions)
    app.add_api_route("/tools/{tool_id}/usage", service.show_usage)
    app.add_api_route("/tools/{tool_id}/versions/{version}/activate", service.activate, methods=["POST"])
    app.add_api_route("/hosts", service.list_hosts)
    app.add_api_route("/hosts/{host}/drain", service.drain, methods=["GET", "POST", "DELETE"])
    app.add_api_route("/system/status", service.system_status)
    app.add_api_route("/catalog", service.catalog)
    app.add_api_route("/audit", service.audit)
    return app


def looked_at(service: Service, task: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Each look moves a task one state on: pending, half done, done."""
    looks = task["looks"]
    call = task["call"]
    assert isinstance(looks, int)
    assert isinstance(call, dict)
    task["looks"] = looks + 1
    if task["status"] == "cancelled":
        return task
    if call["tool_id"] == "endless" or looks < 2:
        task |= {"status": "running", "progress": "half way" if looks else None}
        service.followed.set()
        return task
    result = outcome(call)
    ended: dict[str, JsonValue] = {"status": "completed" if result["status"] == "success" else "failed", "progress": None, "result": result}
    return task | ended


def summary(tool_id: str) -> dict[str, JsonValue]:
    shown = {key: value for key, value in TOOLS[tool_id].items() if key != "input_schema"}
    state: dict[str, JsonValue] = {"backend_runtime": "local", "group_ids": [], "state": "stopped", "status": "active", "version": "1.0.0"}
    return {"tool_id": tool_id, "description": "", "tags": [], **shown, **state}


def match(tool_id: str) -> dict[str, JsonValue]:
    unset: dict[str, JsonValue] = dict.fromkeys(("host_dir", "endpoint_path", "http_method", "port", "pid"))
    schemas: dict[str, JsonValue] = {"params": [], "required_params": [], "input_schema": {}, "output_schema": {}}
    return {**summary(tool_id), **schemas, **unset}


def now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[Service, uvicorn.Server]]:
    """One server for all tests, because building its routes takes a quarter of a second."""
    state = Service()
    listener = socket.create_server(("127.0.0.1", 0))
    state.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(build(state), log_level="error", lifespan="off", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield state, server
    server.should_exit = True
    thread.join(BOUND_S)
    listener.close()


@pytest.fixture
def service(server: tuple[Service, uvicorn.Server]) -> Iterator[Service]:
    """The server in its initial state."""
    state, running = server
    vars(state).update(vars(Service()) | {"url": state.url})
    yield state
    wait_until(lambda: not running.server_state.tasks, "what was asked is answered", BOUND_S)


Invoke = Callable[..., Result]


@pytest.fixture
def toolagent(service: Service) -> Invoke:
    """The command line inside this process, on the small server."""

    def invoke(*words: str, **env: str) -> Result:
        return CliRunner().invoke(command_line, words, env={"TOOL_AGENT_URL": service.url, "TOOL_AGENT_API_KEY": None, **env})

    return invoke
