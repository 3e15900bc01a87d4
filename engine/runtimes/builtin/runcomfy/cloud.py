"""RunComfy's server API: launch a server, see how it is, list those that run, stop one.

It knows no name or tag of a server, so a launch whose answer was lost is looked for in the list (`Cloud.listed`), by a `marked` duration.
The account may send about one request a second.
"""

import hashlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from engine.runtimes.builtin.runcomfy.account import KEY_SECRET, Account
from engine.runtimes.builtin.runcomfy.peer import Answer, NoAnswer, Peer, ask, unreachable
from engine.runtimes.failures import CallFailed
from toolagent.contracts.calls import ErrorType

READY = "Ready"
_COMING = frozenset({"", "Starting", READY})
"""A server in any other state does not become ready any more."""
_ENDING = frozenset({"Deleting", "Deleted"})
_PART = 20
_OK, _NOT_FOUND = range(200, 300), 404
_KINDS: Mapping[int, ErrorType] = {
    400: ErrorType.VALIDATION_ERROR,
    401: ErrorType.PERMISSION_DENIED,
    402: ErrorType.BUDGET_EXCEEDED,
    403: ErrorType.PERMISSION_DENIED,
    409: ErrorType.REJECTED,
    422: ErrorType.VALIDATION_ERROR,
    429: ErrorType.REJECTED,
}
_WORDS: Mapping[int, str] = {
    400: "refuses the request",
    401: f"does not take the key. Check the secret {KEY_SECRET} (TOOL_AGENT_SECRET_{KEY_SECRET})",
    402: "asks for money: the account's balance does not suffice",
    403: f"does not let this account do it. Check the secret {KEY_SECRET} (TOOL_AGENT_SECRET_{KEY_SECRET}) and the user id",
    409: "refuses the request now",
    422: "refuses the request",
    429: "gets too many requests. Try again later",
}


class Server(BaseModel):
    """As the API tells it; what else it tells is left out."""

    server_id: str
    current_status: str = ""
    main_service_url: str | None = None
    server_type: str = ""
    estimated_duration: int | None = None
    service_ready_at: str | None = None
    estimated_stopping_at: str | None = None

    @property
    def is_ready(self) -> bool:
        return self.current_status == READY and bool(self.main_service_url)

    @property
    def is_coming(self) -> bool:
        """Whether it is ready, or may become so."""
        return self.current_status in _COMING

    @property
    def is_ending(self) -> bool:
        """Whether it was stopped, and costs nothing any more."""
        return self.current_status in _ENDING

    @property
    def ready_at(self) -> datetime | None:
        """None: it is not, or says so in no form that is known."""
        with suppress(ValueError):
            found = datetime.fromisoformat(self.service_ready_at or "")
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        return None


class _Workflow(BaseModel):
    version_id: str
    updated_at: str = ""


def marked(duration_s: int, call_id: str) -> int:
    """A little less, by an amount that follows from the call: the one thing that the list of servers tells of who launched them."""
    return duration_s - int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:4]) % max(1, duration_s // _PART)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be launched; `estimated_duration` is in seconds."""

    workflow_version_id: str
    server_type: str
    estimated_duration: int

    @classmethod
    def by(cls, call_id: str, server_type: str, duration_s: int, workflow_version_id: str = "") -> "Order":
        """Of that call: what is the same whenever it is asked for."""
        return cls(workflow_version_id, server_type, marked(duration_s, call_id))

    def resembles(self, server: Server) -> bool:
        return (server.server_type, server.estimated_duration) == (self.server_type, self.estimated_duration)


T = TypeVar("T")


_SERVERS = TypeAdapter(list[Server])
_WORKFLOWS = TypeAdapter(list[_Workflow])


class LaunchUnknown(Exception):
    """The launch was asked for, and nobody knows what became of it."""


class Cloud(AbstractAsyncContextManager["Cloud"]):
    """`async with Cloud(account, peer) as cloud`. Every method raises CallFailed for what the provider refuses."""

    def __init__(self, account: Account, peer: Peer) -> None:
        self._base = account.base
        self._http = peer.client({"Authorization": f"Bearer {account.key}"})

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.aclose()

    async def launch(self, order: Order) -> Server:
        """Raises LaunchUnknown when a server may have been started."""
        body: dict[str, JsonValue] = {
            "workflow_version_id": order.workflow_version_id,
            "server_type": order.server_type,
            "estimated_duration": order.estimated_duration,
        }
        try:
            answer = await ask(self._http, "POST", f"{self._base}/servers", json=body)
        except NoAnswer as error:
            if error.was_sent:
                raise LaunchUnknown(str(error)) from error
            raise unreachable("RunComfy", error) from error
        _refuse(answer)
        with suppress(ValidationError):
            if answer.status in _OK:
                return Server.model_validate(answer.body)
        raise LaunchUnknown(f"it answered {answer.status} {answer.text!r}")

    async def server(self, server_id: str) -> Server | None:
        """None: it knows no such server."""
        answer = await self._asked("GET", f"/servers/{server_id}")
        return None if answer.status == _NOT_FOUND else _read(TypeAdapter(Server), answer)

    async def seen(self, server_id: str) -> tuple[Server | None, bool]:
        """The server, and whether the provider could say. Raises CallFailed for what no patience mends."""
        try:
            return await self.server(server_id), True
        except CallFailed as failure:
            if failure.error_type not in {ErrorType.UNAVAILABLE, ErrorType.REJECTED}:
                raise
            return None, False

    async def listed(self) -> list[Server]:
        """All servers of the account that are there."""
        answer = await self._asked("GET", "/servers")
        found = answer.body.get("servers") if isinstance(answer.body, dict) else answer.body
        return _read(_SERVERS, answer, found)

    async def stop(self, server_id: str) -> Server | None:
        """The provider's word that it is being deleted, and costs nothing from now on; None: it was gone already."""
        answer = await self._asked("DELETE", f"/servers/{server_id}")
        if answer.status == _NOT_FOUND:
            return None
        if answer.status not in _OK:
            raise _garbage(answer, "unknown")
        with suppress(ValidationError):
            return Server.model_validate(answer.body)
        if not answer.text.strip():
            return Server(server_id=server_id)
        raise _garbage(answer, "unknown")

    async def newest_version(self) -> str | None:
        """The version id of the account's workflow that was changed last; None when it has none."""
        answer = await self._asked("GET", "/workflows")
        found = answer.body.get("workflows") if isinstance(answer.body, dict) else answer.body
        every = sorted(_read(_WORKFLOWS, answer, found), key=lambda one: one.updated_at)
        return every[-1].version_id if every else None

    async def _asked(self, method: str, path: str) -> Answer:
        try:
            answer = await ask(self._http, method, f"{self._base}{path}")
        except NoAnswer as error:
            raise unreachable("RunComfy", error) from error
        _refuse(answer)
        if answer.status >= 500:
            outcome = "unknown" if method == "DELETE" else "failed"
            told: dict[str, JsonValue] = {"status": answer.status, "answer": answer.text}
            raise CallFailed(ErrorType.UNAVAILABLE, f"RunComfy failed: it answered {answer.status}.", told, outcome)
        return answer


def _refuse(answer: Answer) -> None:
    kind = _KINDS.get(answer.status)
    if kind is None:
        return
    details: dict[str, JsonValue] = {"status": answer.status, "answer": answer.text}
    if kind is ErrorType.PERMISSION_DENIED:
        details["secret"] = KEY_SECRET
    if (pause_s := _retry_after_s(answer.headers.get("retry-after"))) is not None:
        details["retry_after_s"] = pause_s
    raise CallFailed(kind, f"RunComfy {_WORDS[answer.status]} ({answer.status}).", details)


def _read(adapter: TypeAdapter[T], answer: Answer, value: JsonValue = None) -> T:
    try:
        return adapter.validate_python(answer.body if value is None else value)
    except ValidationError as error:
        raise _garbage(answer) from error


def _garbage(answer: Answer, outcome: str = "failed") -> CallFailed:
    message = "RunComfy answered with what is not an answer of its server API."
    told: dict[str, JsonValue] = {"status": answer.status, "answer": answer.text, "cause": "garbage"}
    return CallFailed(ErrorType.UNAVAILABLE, message, told, "unknown" if outcome == "unknown" else "failed")


def _retry_after_s(value: str | None) -> float | None:
    """Seconds, or a date."""
    if value is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
