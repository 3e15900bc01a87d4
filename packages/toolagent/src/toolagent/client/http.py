"""Tool Agent over HTTP: a synchronous client, typed with the contracts."""

import mimetypes
import re
from collections.abc import Generator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import JsonValue, ValidationError

from toolagent.contracts.calls import CallMode, ToolCall, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import (
    Health,
    Matches,
    Problem,
    StoppedTool,
    Task,
    TaskAccepted,
    ToolDestroyed,
    ToolDetail,
    ToolListing,
    ToolStarted,
    ToolStates,
)
from toolagent.contracts.records import StoredFile
from toolagent.contracts.routes import ToolRoute

__all__ = [
    "DEFAULT_URL",
    "Refused",
    "ServiceError",
    "ToolAgentHttp",
    "UnexpectedAnswer",
    "Unreachable",
]

DEFAULT_URL = "http://127.0.0.1:8001"
_ACCEPTED = 202
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class ServiceError(Exception):
    """The service did not do what it was asked.

    ServiceError
    ├── Unreachable        nothing answered, or the connection broke
    ├── Refused            the service said no, and why (body, route, authentication)
    └── UnexpectedAnswer   an answer that is not of this protocol
    """


class Unreachable(ServiceError):
    """Nothing answered at `url`. `sent` says whether the request may have arrived all the same."""

    def __init__(self, url: str, reason: str, *, sent: bool) -> None:
        broke = "The connection broke before the answer came from" if sent else "Nothing answers at"
        super().__init__(f"{broke} {url} ({reason}).")
        self.url = url
        self.sent = sent


class Refused(ServiceError):
    """The service refused the request; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or problem.title or f"The service answered {problem.status}.")
        self.problem = problem


class UnexpectedAnswer(ServiceError):
    """Something answered, but not as Tool Agent does."""

    def __init__(self, answer: httpx.Response) -> None:
        kind = answer.headers.get("content-type", "no content type")
        super().__init__(
            f"{answer.request.method} {answer.request.url} was answered {answer.status_code} ({kind}), which is not understood."
        )
        self.status_code = answer.status_code


ContractT = TypeVar("ContractT", bound=Contract)


class ToolAgentHttp:
    """One connection pool to one service; a context manager.

    Every method raises `Unreachable`, `Refused` or `UnexpectedAnswer`. What a *tool* got wrong is not raised: it is a `ToolResult`.
    """

    def __init__(self, url: str = DEFAULT_URL, api_key: str | None = None, *, timeout_s: float = 30.0) -> None:
        """`timeout_s` bounds each request in seconds, but for a synchronous call, which the service bounds.

        Raises ValueError for a bad URL or key.
        """
        self.url = _service_url(url)
        headers = {"Authorization": f"Bearer {_header_safe(api_key)}"} if api_key else {}
        self._client = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=5.0),
            # The server closes idle connections at 5 s; one used at that edge breaks now and then.
            limits=httpx.Limits(keepalive_expiry=2.0),
            # A proxy of the environment cannot reach this machine's loopback.
            trust_env=httpx.URL(self.url).host not in _LOOPBACK,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def health(self) -> Health:
        """What is ready and what is not; 503 is an answer too."""
        return _parsed(Health, self._ask("GET", "/health"), also=(503,))

    def tools(self) -> ToolListing:
        return _parsed(ToolListing, self._ask("GET", "/tools"))

    def tool(self, tool_id: str) -> ToolDetail:
        return _parsed(ToolDetail, self._ask("GET", f"/tools/{_segment(tool_id)}"))

    def search(self, keyword: str, category: str | None = None) -> Matches:
        body: dict[str, JsonValue] = {"keyword": keyword}
        if category:
            body["category"] = category
        return _parsed(Matches, self._ask("POST", "/search_tools", body))

    def routes(self) -> tuple[ToolRoute, ...]:
        """The running state of all tools."""
        return _parsed(ToolStates, self._ask("GET", "/tools/status")).tools

    def start(self, tool_id: str) -> ToolStarted:
        return _parsed(ToolStarted, self._ask("POST", f"/tools/{_segment(tool_id)}/start"))

    def stop(self, tool_id: str) -> StoppedTool:
        return _parsed(StoppedTool, self._ask("POST", f"/tools/{_segment(tool_id)}/stop"))

    def destroy(self, tool_id: str) -> ToolDestroyed:
        """Stop the tool and take it out of the registry."""
        return _parsed(ToolDestroyed, self._ask("DELETE", f"/tools/{_segment(tool_id)}"))

    def run(self, call: ToolCall) -> ToolResult | TaskAccepted:
        """Make a call: a `TaskAccepted` when its mode is async and it was taken, else how it ended."""
        body = call.model_dump(mode="json", exclude_unset=True) | {"mode": call.mode.value}
        answer = self._ask("POST", "/run_tool", body, unbounded=call.mode is CallMode.SYNC)
        if answer.status_code == _ACCEPTED:
            return _parsed(TaskAccepted, answer)
        if _is_problem(answer):
            raise Refused(_problem(answer))
        return _parsed(ToolResult, answer, also=(answer.status_code,))

    def task(self, task_id: str) -> Task:
        return _parsed(Task, self._ask("GET", f"/tasks/{_segment(task_id)}"))

    def cancel(self, task_id: str) -> Task:
        """Ask for the task to be cancelled; it ends a little later."""
        return _parsed(Task, self._ask("POST", f"/tasks/{_segment(task_id)}/cancel"))

    def upload(self, path: Path) -> StoredFile:
        """Store a local file. Raises OSError when it cannot be read."""
        name = path.name.encode("utf-8", "replace").decode("utf-8")
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        with path.open("rb") as content, self._reached():
            answer = self._client.post("/files", files={"file": (name, content, media_type)})
        return _parsed(StoredFile, answer)

    def download(self, file_id: str, folder: Path) -> Path:
        """Save a stored file under its own name in `folder` and return where; a file that is already there is kept. Raises OSError."""
        with self._reached(), self._client.stream("GET", f"/files/{_segment(file_id)}") as answer:
            if not answer.is_success:
                answer.read()
                _require_success(answer)
            target = _free_path(folder, _file_name(answer, file_id), file_id)
            part = target.with_name(f".{file_id}.part")
            try:
                with part.open("wb") as content:
                    for chunk in answer.iter_bytes():
                        content.write(chunk)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        return target

    def _ask(self, method: str, path: str, body: dict[str, JsonValue] | None = None, *, unbounded: bool = False) -> httpx.Response:
        timeout = httpx.Timeout(None, connect=5.0) if unbounded else self._client.timeout
        with self._reached():
            return self._client.request(method, path, json=body, timeout=timeout)

    @contextmanager
    def _reached(self) -> Generator[None, None, None]:
        try:
            yield
        except httpx.RequestError as error:
            reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
            raise Unreachable(self.url, reason, sent=not isinstance(error, _NEVER_SENT)) from error


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


def _segment(identifier: str) -> str:
    """One path segment; dots alone would walk up the path."""
    return quote(identifier, safe=":") if identifier.strip(".") else quote(identifier.replace(".", "%2E"))


def _is_problem(answer: httpx.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("application/problem+json")


def _problem(answer: httpx.Response) -> Problem:
    try:
        return Problem.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnexpectedAnswer(answer) from error


def _require_success(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    if _is_problem(answer):
        raise Refused(_problem(answer))
    try:
        result = ToolResult.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnexpectedAnswer(answer) from error
    kind, detail = (result.error.type.value, result.error.message) if result.error else ("error", "")
    details = result.error.details if result.error else None
    raise Refused(Problem(type=kind, title=kind, status=answer.status_code, detail=detail, details=details))


def _parsed(contract: type[ContractT], answer: httpx.Response, also: tuple[int, ...] = ()) -> ContractT:
    if answer.status_code not in also or _is_problem(answer):
        _require_success(answer)
    try:
        return contract.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnexpectedAnswer(answer) from error


def _file_name(answer: httpx.Response, file_id: str) -> str:
    """The name the service gives the file, reduced to a harmless one; else its id with an extension for its media type."""
    header = Message()
    header["content-disposition"] = answer.headers.get("content-disposition", "")
    given = PurePosixPath((header.get_filename() or "").replace("\\", "/")).name.lstrip(".")
    if given and given.isprintable() and len(given.encode("utf-8", "replace")) <= 200:
        return given
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    return file_id + (mimetypes.guess_extension(media_type) or "")


def _free_path(folder: Path, name: str, file_id: str) -> Path:
    target = folder / name
    return target if not target.exists() else target.with_name(f"{target.stem}-{file_id.removeprefix('file_')[:8]}{target.suffix}")
