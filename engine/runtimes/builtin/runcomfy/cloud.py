"""RunComfy's server API: launch a server, see its state, list all servers, stop one.

Servers have no names or tags. So a launch whose answer was lost is found in the list (`Cloud.listed`) by its `marked` duration.
The account may send about one request a second.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from engine.runtimes.builtin.runcomfy.account import KEY_SECRET, Account
from engine.runtimes.builtin.runcomfy.peer import Answer, Api, NoAnswer, Peer, ask, unreachable
from engine.runtimes.failures import CallFailed
from toolagent.contracts.calls import ErrorType

READY = "Ready"
_COMING = frozenset({"", "Starting", READY})
"""From any other state a server never becomes ready."""
_ENDING = frozenset({"Deleting", "Deleted"})
_PART = 20
_OK, _NOT_FOUND = range(200, 300), 404
_CHECK_KEY = f"Check the secret {KEY_SECRET} (TOOL_AGENT_SECRET_{KEY_SECRET})"
_REFUSALS: Mapping[int, tuple[ErrorType, str]] = {
    400: (ErrorType.VALIDATION_ERROR, "refuses the request"),
    401: (ErrorType.PERMISSION_DENIED, f"does not take the key. {_CHECK_KEY}"),
    402: (ErrorType.BUDGET_EXCEEDED, "asks for money: the account's balance does not suffice"),
    403: (ErrorType.PERMISSION_DENIED, f"does not let this account do it. {_CHECK_KEY} and the user id"),
    409: (ErrorType.REJECTED, "refuses the request now"),
    422: (ErrorType.VALIDATION_ERROR, "refuses the request"),
    429: (ErrorType.REJECTED, "gets too many requests. Try again later"),
}


class Server(BaseModel):
    """The fields of the API's answer that are used."""

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
        """Whether it was stopped. It costs nothing any more."""
        return self.current_status in _ENDING

    @property
    def ready_at(self) -> datetime | None:
        """None if it is not ready, or the time has an unknown form."""
        with suppress(ValueError):
            found = datetime.fromisoformat(self.service_ready_at or "")
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        return None


class _Workflow(BaseModel):
    version_id: str
    updated_at: str = ""


def marked(duration_s: int, call_id: str) -> int:
    """The duration, reduced by up to 5 %. The amount follows from the call id, so the list of servers tells which call launched one."""
    return duration_s - int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:4]) % max(1, duration_s // _PART)


@dataclass(frozen=True, slots=True)
class Order:
    """The body of a launch request; `estimated_duration` is in seconds."""

    workflow_version_id: str
    server_type: str
    estimated_duration: int

    @classmethod
    def by(cls, call_id: str, server_type: str, duration_s: int, workflow_version_id: str = "") -> "Order":
        """The order of a call: always the same for the same arguments."""
        return cls(workflow_version_id, server_type, marked(duration_s, call_id))

    def resembles(self, server: Server) -> bool:
        return (server.server_type, server.estimated_duration) == (self.server_type, self.estimated_duration)


T = TypeVar("T")

_SERVER = TypeAdapter(Server)
_SERVERS = TypeAdapter(list[Server])
_WORKFLOWS = TypeAdapter(list[_Workflow])


class LaunchUnknown(Exception):
    """The launch request was sent; whether a server was started is unknown."""


class Cloud(Api):
    """Every method raises CallFailed if the provider refuses."""

    def __init__(self, account: Account, peer: Peer) -> None:
        super().__init__(account.base, peer.client({"Authorization": f"Bearer {account.key}"}))

    async def launch(self, order: Order) -> Server:
        """Raises LaunchUnknown if a server may have been started."""
        try:
            answer = await ask(self._http, "POST", f"{self.url}/servers", json=asdict(order))
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
        """None if the provider knows no such server."""
        answer = await self._asked("GET", f"servers/{server_id}")
        return None if answer.status == _NOT_FOUND else _read(_SERVER, answer, answer.body)

    async def seen(self, server_id: str) -> tuple[Server | None, bool]:
        """The server, and whether the provider could tell. Raises CallFailed if asking again cannot help."""
        try:
            return await self.server(server_id), True
        except CallFailed as failure:
            if failure.error_type not in {ErrorType.UNAVAILABLE, ErrorType.REJECTED}:
                raise
            return None, False

    async def listed(self) -> list[Server]:
        """All servers of the account."""
        return await self._list("servers", _SERVERS)

    async def stop(self, server_id: str) -> Server | None:
        """The provider confirms that the server is being deleted and costs nothing from now on. None if it was gone already."""
        answer = await self._asked("DELETE", f"servers/{server_id}")
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
        """The version id of the account's workflow that was changed last; None if it has no workflow."""
        every = sorted(await self._list("workflows", _WORKFLOWS), key=lambda one: one.updated_at)
        return every[-1].version_id if every else None

    async def _list(self, name: str, adapter: TypeAdapter[T]) -> T:
        answer = await self._asked("GET", name)
        return _read(adapter, answer, answer.body.get(name) if isinstance(answer.body, dict) else answer.body)

    async def _asked(self, method: str, path: str) -> Answer:
        try:
            answer = await ask(self._http, method, f"{self.url}/{path}")
        except NoAnswer as error:
            raise unreachable("RunComfy", error) from error
        _refuse(answer)
        if answer.status >= 500:
            outcome = "unknown" if method == "DELETE" else "failed"
            raise CallFailed(ErrorType.UNAVAILABLE, f"RunComfy failed: it answered {answer.status}.", answer.facts, outcome)
        return answer


def _refuse(answer: Answer) -> None:
    """Raises CallFailed if the status is a refusal."""
    if answer.status not in _REFUSALS:
        return
    (kind, words), details = _REFUSALS[answer.status], answer.facts
    if kind is ErrorType.PERMISSION_DENIED:
        details["secret"] = KEY_SECRET
    if (pause_s := _retry_after_s(answer.headers.get("retry-after"))) is not None:
        details["retry_after_s"] = pause_s
    raise CallFailed(kind, f"RunComfy {words} ({answer.status}).", details)


def _read(adapter: TypeAdapter[T], answer: Answer, value: JsonValue) -> T:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise _garbage(answer) from error


def _garbage(answer: Answer, outcome: Literal["failed", "unknown"] = "failed") -> CallFailed:
    message = "RunComfy's answer does not follow its server API."
    return CallFailed(ErrorType.UNAVAILABLE, message, {**answer.facts, "cause": "garbage"}, outcome)


def _retry_after_s(value: str | None) -> float | None:
    """The header holds seconds, or a date."""
    if value is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
