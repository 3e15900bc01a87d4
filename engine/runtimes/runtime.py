"""The protocol of runtimes: what each way of running a tool must do."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from pydantic import JsonValue

from toolagent.contracts.call_messages import Listener, LogLevel, Question
from toolagent.contracts.calls import Caller
from toolagent.contracts.contract import Contract
from toolagent.contracts.manifest import ToolManifest

Progress = Callable[[str], None]
"""Called with a short text about the current step; must not block."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the tool to the caller. `key` is the tool's name for the question, if it has one."""

    question: Question
    params: dict[str, JsonValue]
    key: str | None = None


class Dialogue(Protocol):
    """The messages and questions of a tool to the caller during one call. None of them can fail the call."""

    @property
    def listens(self) -> Listener:
        """The messages that the caller wants, and the questions that it answers."""
        ...

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: LogLevel, logger: str | None, data: JsonValue) -> None: ...

    def show(self, content: JsonValue) -> None:
        """Keep the tool's answer in its original form with the result."""
        ...

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        """The answers in the same order, `{result}` or `{error: {code, message}}`. Waits for the caller."""
        ...


class Silence:
    """The dialogue of a call without a listener: questions are declined."""

    listens = Listener()
    shown: JsonValue = None

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: LogLevel, logger: str | None, data: JsonValue) -> None: ...

    def show(self, content: JsonValue) -> None: ...

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        return [declined(one.question) for one in asked]


def declined(question: Question) -> dict[str, JsonValue]:
    """The answer for a caller that cannot answer: a form is declined, other questions get an error."""
    if question == "elicitation/create":
        return {"result": {"action": "decline"}}
    return {"error": {"code": _NOT_SUPPORTED, "message": f"The caller of this tool does not answer {question}."}}


S_contra = TypeVar("S_contra", bound=Contract, contravariant=True)


@dataclass(frozen=True, slots=True)
class Running:
    """A started tool. `endpoint` is `http://…`, `https://…`, `unix:…`, `stdio:<pid>`, or `builtin:<handler>`."""

    endpoint: str
    started_at: datetime
    pid: int | None = None
    port: int | None = None


_NOT_SUPPORTED = -32601
"""JSON-RPC's code for an unknown method."""

NO_FOLDER = Path(os.devnull, "tool", "call", "out")
"""The output folder of a tool whose schemas mention no files. It cannot exist."""

_TMP = "/tmp"  # noqa: S108 - the tool's own, in its sandbox


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One request to a running tool. `timeout_s` counts from the moment of sending."""

    call_id: str
    params: dict[str, JsonValue]
    timeout_s: float
    output_dir: Path = NO_FOLDER
    """The folder for files that the tool returns."""
    progress: Progress = lambda _: None
    """Called with the tool's progress messages."""
    manifest: ToolManifest | None = None
    """The tool's current manifest; the running tool may have been started with an older one."""
    caller: Caller = field(default_factory=Caller)
    """The caller, for the audit."""
    dialogue: Dialogue = field(default_factory=Silence)
    """The dialogue with the caller, for tools that send more than progress."""

    @property
    def written_to(self) -> str:
        """The output folder that the tool is told: this call's own, if there is one."""
        return str(self.output_dir) if self.output_dir.is_dir() else _TMP


@dataclass(frozen=True, slots=True)
class Offer:
    """A request to a tool's server that is not a tool call, in the server's own protocol. `timeout_s` is in seconds."""

    method: str
    params: dict[str, JsonValue]
    timeout_s: float
    listens: Listener = field(default_factory=Listener)
    """The questions that the caller can answer, if the server asks first."""


class Retired(str):
    """How a tool ended that its runtime stopped after too long without use."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Vitals:
    """A tool's answer to a health check. `said` is why it is not well; `holds` counts the uses that it reports."""

    is_well: bool
    said: str = ""
    holds: int = 0


class Runtime(Protocol[S_contra]):
    """One module per source type. Stateless towards the caller: the supervisor remembers what runs."""

    async def start(self, tool: ToolManifest, source: S_contra, progress: Progress) -> Running:
        """Start the tool and wait until it is healthy. Raises StartFailed."""
        ...

    async def is_alive(self, running: Running) -> bool:
        """Whether the tool still runs. Must be cheap."""
        ...

    async def is_idle(self, running: Running, source: S_contra) -> bool:
        """Whether the tool is ready and not busy. Asked after a cancelled call."""
        ...

    async def call(self, running: Running, source: S_contra, request: ToolRequest) -> JsonValue:
        """Send the request once. Raises NotSent or CallFailed. A cancellation closes the connection."""
        ...

    async def stop(self, running: Running) -> None:
        """End the tool and everything it started. Stopping an ended tool is no error."""
        ...


class Unstarted:
    """Base of runtimes that start nothing: their tools are always available, and nothing has to be stopped."""

    async def is_alive(self, running: Running) -> bool:  # noqa: ARG002 - only a call could tell
        return True

    async def is_idle(self, running: Running, source: Contract) -> bool:  # noqa: ARG002 - not started here
        return True

    async def stop(self, running: Running) -> None:
        """Nothing was started."""


@runtime_checkable
class Mortal(Protocol):
    """A runtime whose tools are processes, which can end by themselves."""

    async def ended(self, running: Running) -> str:
        """Wait until the tool has ended, by itself or stopped; returns how: `exited with code 1`."""
        ...


@runtime_checkable
class Examined(Protocol):
    """A runtime whose tools have a health check."""

    async def vitals(self, running: Running, source: Any, timeout_s: float) -> Vitals:
        """Ask once, for at most `timeout_s` seconds."""
        ...


@runtime_checkable
class Expiring(Protocol):
    """A runtime that stops tools after `ttl_s` seconds without use."""

    @property
    def ttl_s(self) -> float: ...


@runtime_checkable
class Installing(Protocol):
    """A runtime without lasting processes whose start may take minutes; until then its tools are not ready."""

    installs: Literal[True]


@runtime_checkable
class Offering(Protocol):
    """A runtime whose tools' servers offer more than tools."""

    async def offered(self, running: Running, source: Any, offer: Offer) -> dict[str, JsonValue]:
        """The server's answer: `{result}`, or `{error: {code, message, data}}`, also for an unknown method. Raises NotSent."""
        ...


@runtime_checkable
class PerCall(Protocol):
    """A runtime that may run a tool as one process per call. It ends with all it started before a cancelled call returns."""

    def ends_with_call(self, running: Running) -> bool: ...


AnyRuntime: TypeAlias = Runtime[Any]
"""A runtime chosen by a source's type. The registry, not the type checker, ensures that they match."""
