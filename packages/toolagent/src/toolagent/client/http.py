"""Tool Agent over HTTP: a synchronous client, typed with the contracts."""

import hashlib
import mimetypes
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from pydantic import JsonValue, TypeAdapter, ValidationError

from toolagent.client.bounded_answers import UNBOUNDED, SyncBoundedAnswers
from toolagent.client.http_answers import (
    Refused,
    ServiceError,
    UnexpectedAnswer,
    Unreachable,
    WrongContent,
    is_problem,
    parsed,
    problem_of,
    require_success,
)
from toolagent.client.http_chats import ChatRequests
from toolagent.client.http_files import file_name, free_path, size_of, stream_to
from toolagent.client.http_formats import FormatRequests
from toolagent.client.http_groups import GroupRequests
from toolagent.client.http_making import MakingRequests
from toolagent.client.http_mcp import McpServerRequests
from toolagent.client.http_paths import given, path_of
from toolagent.contracts.audit import AuditPage
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.batches import BatchResult, ToolBatch
from toolagent.contracts.calls import CallMode, ToolCall, ToolResult
from toolagent.contracts.external_tables import ExternalTable, ExternalTables, RemovedTable
from toolagent.contracts.hosts import HostDrain, HostListing
from toolagent.contracts.http import (
    Health,
    Matches,
    StoppedTool,
    Task,
    TaskAccepted,
    ToolDestroyed,
    ToolDetail,
    ToolListing,
    ToolStarted,
    ToolStates,
)
from toolagent.contracts.knowhub import KnowHubSync
from toolagent.contracts.records import StoredFile
from toolagent.contracts.references import ResultReference
from toolagent.contracts.routes import ToolRoute
from toolagent.contracts.system import SystemStatus
from toolagent.contracts.usage import ToolUsage
from toolagent.contracts.versions import ToolVersions
from toolagent.core.loopback import LOOPBACK_NAMES

__all__ = [
    "DEFAULT_URL",
    "Refused",
    "ServiceError",
    "ToolAgentHttp",
    "UnexpectedAnswer",
    "Unreachable",
    "WrongContent",
]

DEFAULT_URL = "http://127.0.0.1:8001"
_ACCEPTED = 202
_MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Limit of answers that are read as a whole. Files are streamed, and have no limit."""

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_DOCUMENTS = TypeAdapter(dict[str, JsonValue])


class ToolAgentHttp(MakingRequests, ChatRequests, GroupRequests, McpServerRequests, FormatRequests):
    """One connection pool to one service; a context manager.

    Every method raises `Unreachable`, `Refused` or `UnexpectedAnswer`. Errors of a *tool* are not raised: they are in the `ToolResult`.
    """

    def __init__(self, url: str = DEFAULT_URL, api_key: str | None = None, *, timeout_s: float = 30.0) -> None:
        """`timeout_s` limits each request in seconds, except synchronous calls, which the service limits.

        Raises ValueError for a bad URL or key.
        """
        self.url = _service_url(url)
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {_header_safe(api_key)}"} if api_key else {})
        parts = httpx.URL(self.url)
        is_near = parts.host in LOOPBACK_NAMES
        self._client = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=5.0),
            # The server closes idle connections after 5 s. A request at that moment would fail.
            limits=httpx.Limits(keepalive_expiry=2.0),
            # A proxy of the environment cannot reach this machine's loopback.
            trust_env=not is_near,
            # Loopback is not encrypted, and loading certificates takes 50 ms.
            verify=not is_near or parts.scheme == "https",
            event_hooks={"response": [SyncBoundedAnswers(_MAX_ANSWER_BYTES)]},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def health(self) -> Health:
        """The health checks, also of an unhealthy service."""
        return parsed(Health, self._ask("GET", "/health"), also=(503,))

    def tools(self, namespace: str | None = None, tag: str | None = None) -> ToolListing:
        return self._get(ToolListing, "tools", namespace=namespace, tag=tag)

    def tool(self, tool_id: str) -> ToolDetail:
        return self._get(ToolDetail, "tools", tool_id)

    def search(
        self,
        keyword: str,
        category: str | None = None,
        namespace: str | None = None,
        tag: str | None = None,
        *,
        group: str | None = None,
        backend_runtime: BackendRuntime | None = None,
        limit: int | None = None,
    ) -> Matches:
        """The best match first."""
        body = given(
            keyword=keyword, category=category, namespace=namespace, tag=tag, group=group, backend_runtime=backend_runtime, limit=limit
        )
        return self._post(Matches, "search_tools", body=body)

    def routes(self) -> tuple[ToolRoute, ...]:
        """The running state of all tools."""
        return self._get(ToolStates, "tools", "status").tools

    def start(self, tool_id: str) -> ToolStarted:
        return self._post(ToolStarted, "tools", tool_id, "start")

    def stop(self, tool_id: str) -> StoppedTool:
        return self._post(StoppedTool, "tools", tool_id, "stop")

    def destroy(self, tool_id: str) -> ToolDestroyed:
        """Stop the tool and remove it from the registry."""
        return self._delete(ToolDestroyed, "tools", tool_id)

    def run(self, call: ToolCall) -> ToolResult | TaskAccepted:
        """Make a call. Returns a `TaskAccepted` if its mode is async and it was accepted, else the result."""
        body = call.model_dump(mode="json", exclude_unset=True) | {"mode": call.mode.value}
        answer = self._ask("POST", "/run_tool", body, unbounded=call.mode is CallMode.SYNC)
        if answer.status_code == _ACCEPTED:
            return parsed(TaskAccepted, answer)
        if is_problem(answer):
            raise Refused(problem_of(answer))
        return parsed(ToolResult, answer, also=(answer.status_code,))

    def task(self, task_id: str) -> Task:
        return self._get(Task, "tasks", task_id)

    def cancel(self, task_id: str) -> Task:
        """Cancel the task; it ends a little later."""
        return self._post(Task, "tasks", task_id, "cancel")

    def upload(self, path: Path) -> StoredFile:
        """Store a local file. Raises OSError when it cannot be read."""
        name = path.name.encode("utf-8", "replace").decode("utf-8")
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        with path.open("rb") as content, self._reached():
            answer = self._client.post("/files", files={"file": (name, content, media_type)})
        return parsed(StoredFile, answer)

    def download(self, file_id: str, folder: Path) -> Path:
        """Save a stored file under its own name in `folder` and return its path; an existing file is kept. Raises OSError."""
        with self._reached(), self._client.stream("GET", path_of("files", file_id), extensions=UNBOUNDED) as answer:
            require_success(answer)
            target = free_path(folder, file_name(answer, file_id), file_id)
            part = target.with_name(f".{file_id}.part")
            try:
                with part.open("wb") as content:
                    for chunk in answer.iter_bytes():
                        content.write(chunk)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        return target

    def save(self, file_id: str, target: Path) -> Path:
        """Write a stored file to `target`. Bytes that an earlier attempt left in `<target>.part` are not downloaded again.

        A broken download continues as long as each attempt brings some bytes. Raises OSError.
        """
        part = target.with_name(f"{target.name}.{file_id}.part")
        while True:
            before = size_of(part)
            try:
                with self._reached():
                    stream_to(self._client, path_of("files", file_id), part)
                break
            except Unreachable:
                if size_of(part) <= before:
                    raise
        part.replace(target)
        return target

    def whole_result(self, result: ToolResult) -> JsonValue:
        """The output of the tool, downloaded if the result is a reference. Raises WrongContent when size or hash differ."""
        if not result.is_reference:
            return result.result
        reference = ResultReference.model_validate(result.result)
        with self._reached():
            answer = self._client.get(path_of("files", reference.file_id))
        require_success(answer)
        content = answer.content
        if len(content) != reference.size or hashlib.sha256(content).hexdigest() != reference.sha256:
            raise WrongContent(f"{reference.file} is {len(content)} bytes that are not those of the result ({reference.size} bytes).")
        try:
            return _JSON.validate_json(content)
        except ValidationError as error:
            raise WrongContent(f"{reference.file} is not JSON.") from error

    def usage(self, tool_id: str, hours: float | None = None) -> ToolUsage:
        """Statistics of the calls of the last hours, or of all recorded calls."""
        return self._get(ToolUsage, "tools", tool_id, "usage", hours=None if hours is None else f"{hours:g}")

    def versions(self, tool_id: str) -> ToolVersions:
        return self._get(ToolVersions, "tools", tool_id, "versions")

    def activate(self, tool_id: str, version: str) -> ToolVersions:
        """Make this the version for calls that name none."""
        return self._post(ToolVersions, "tools", tool_id, "versions", version, "activate")

    def deactivate(self, tool_id: str, version: str) -> ToolVersions:
        """Exclude the version from new calls. Running calls finish on it."""
        return self._post(ToolVersions, "tools", tool_id, "versions", version, "deactivate")

    def catalog(self) -> dict[str, JsonValue]:
        """The catalog as files: JSON documents by file name."""
        answer = self._ask("GET", "/catalog")
        require_success(answer)
        try:
            return _DOCUMENTS.validate_json(answer.content)
        except ValidationError as error:
            raise UnexpectedAnswer(answer) from error

    def audit(self, tool_id: str | None = None, since: datetime | None = None, limit: int = 100) -> AuditPage:
        """The audit log of sandboxed programs, the newest first. `since` needs a time zone."""
        return self._get(AuditPage, "audit", tool_id=tool_id, since=since and since.isoformat(), limit=limit)

    def run_batch(self, batch: ToolBatch) -> BatchResult | TaskAccepted:
        """Make many calls. Returns a `TaskAccepted` if the batch's mode is async, else all results in order."""
        body = batch.model_dump(mode="json", exclude_unset=True, exclude={"calls": {"__all__": {"mode", "stream"}}})
        answer = self._ask("POST", "/run_tools", body, unbounded=batch.mode is CallMode.SYNC)
        return parsed(TaskAccepted if answer.status_code == _ACCEPTED else BatchResult, answer)

    def hosts(self) -> HostListing:
        return self._get(HostListing, "hosts")

    def drain_host(self, host: str) -> HostDrain:
        """Let a host take no new calls. Repeating this changes nothing."""
        return self._post(HostDrain, "hosts", host, "drain")

    def undrain_host(self, host: str) -> HostDrain:
        """Let a host take calls again."""
        return self._delete(HostDrain, "hosts", host, "drain")

    def drain_of(self, host: str) -> HostDrain:
        """How far a host has drained."""
        return self._get(HostDrain, "hosts", host, "drain")

    def system_status(self) -> SystemStatus:
        return self._get(SystemStatus, "system", "status")

    def external_tables(self) -> ExternalTables:
        return self._get(ExternalTables, "external_tools")

    def add_table(self, source: str, tools_url: str, api_key: str | None = None) -> ExternalTable:
        """Register a table: fetch it, and add its tools."""
        body = given(source=source, tools_url=tools_url, api_key=api_key or None)
        return self._post(ExternalTable, "external_tools", "register", body=body, unbounded=True)

    def refresh_table(self, source: str) -> ExternalTable:
        """Fetch a table again. `error` says why that failed, if it did."""
        return self._post(ExternalTable, "external_tools", source, "refresh", unbounded=True)

    def remove_table(self, source: str) -> RemovedTable:
        return self._delete(RemovedTable, "external_tools", source)

    def sync_knowhub(self, *, dry_run: bool = False) -> KnowHubSync:
        """Synchronise with KnowHub, or with `dry_run` only plan the changes."""
        return self._post(KnowHubSync, "knowhub", "sync", body={"dry_run": dry_run}, unbounded=True)


def _service_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is not a URL: {error}") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"{url!r} is not the URL of a service; it looks like {DEFAULT_URL}")
    return url.rstrip("/")


def _header_safe(api_key: str) -> str:
    if not (api_key.isascii() and api_key.isprintable()) or api_key != api_key.strip():
        raise ValueError("The API key cannot be sent: it holds spaces at its ends, line breaks or characters outside ASCII.")
    return api_key
