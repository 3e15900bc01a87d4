"""What every way of running a tool has to be able to do."""

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
"""Called with a few words on what is being done now; must not block."""


def _unheard(_: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class Asked:
    """`key` is what the tool calls the question, where it has a name."""

    question: Question
    params: dict[str, JsonValue]
    key: str | None = None


class Dialogue(Protocol):
    """What a tool says to the caller of one call while that goes on, and asks of it. Nothing of it fails the call."""

    @property
    def listens(self) -> Listener:
        """What is heard, and which questions are answered at all."""
        ...

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: LogLevel, logger: str | None, data: JsonValue) -> None: ...

    def show(self, content: JsonValue) -> None:
        """Keep with the result how the tool itself wrote its answer."""
        ...

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        """The answers in the same order, `{result}` or `{error: {code, message}}`. Takes as long as the caller does."""
        ...


class Silence:
    """The dialogue of a call that nobody listens to: what is asked is declined."""

    listens = Listener()
    shown: JsonValue = None

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: LogLevel, logger: str | None, data: JsonValue) -> None: ...

    def show(self, content: JsonValue) -> None: ...

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        return [declined(one.question) for one in asked]


def declined(question: Question) -> dict[str, JsonValue]:
    """The answer of who cannot answer: a form is declined, as a person would; of the others there is no such answer."""
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
"""JSON-RPC's code of a method that is not there."""

NO_FOLDER = Path(os.devnull, "tool", "call", "out")
"""Of a call of a tool whose schemas speak of no files: nothing can be there."""

_TMP = "/tmp"  # noqa: S108 - the tool's own, in its sandbox


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One request to a running tool. `timeout_s` is in seconds and counts from the moment of sending."""

    call_id: str
    params: dict[str, JsonValue]
    timeout_s: float
    output_dir: Path = NO_FOLDER
    """Where the tool may leave files for this call."""
    progress: Progress = _unheard
    """Called with the tool's own progress messages."""
    manifest: ToolManifest | None = None
    """The tool as it is now; what it was when it was started may be older."""
    caller: Caller = field(default_factory=Caller)
    """Who asked, for the audit."""
    dialogue: Dialogue = field(default_factory=Silence)
    """With the caller, for tools that say more than how far they are."""

    @property
    def written_to(self) -> str:
        """What the tool is told to leave files in: the folder of this call where one was made for it."""
        return str(self.output_dir) if self.output_dir.is_dir() else _TMP


@dataclass(frozen=True, slots=True)
class Offer:
    """A request to the server of a tool for what is no tool, in the server's own protocol. `timeout_s` is in seconds."""

    method: str
    params: dict[str, JsonValue]
    timeout_s: float
    listens: Listener = field(default_factory=Listener)
    """What the caller can answer, should the server ask it first."""


class Retired(str):
    """How a tool ended that its runtime stopped because it was unused."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a tool answered when its health was asked. `said` is why it is not well; `holds` counts what it says that it is in use by."""

    is_well: bool
    said: str = ""
    holds: int = 0


class Runtime(Protocol[S_contra]):
    """One module a source type. Stateless towards the caller: what runs is remembered by the supervisor."""

    async def start(self, tool: ToolManifest, source: S_contra, progress: Progress) -> Running:
        """Bring the tool up and wait until it is healthy. Raises StartFailed."""
        ...

    async def is_alive(self, running: Running) -> bool:
        """Whether it is still there, at no noticeable cost."""
        ...

    async def is_idle(self, running: Running, source: S_contra) -> bool:
        """Whether it can serve and is not busy, asked after a cancelled call."""
        ...

    async def call(self, running: Running, source: S_contra, request: ToolRequest) -> JsonValue:
        """Send the request once. Raises NotSent or CallFailed; cancelling it closes the connection."""
        ...

    async def stop(self, running: Running) -> None:
        """End it and everything it started. Stopping what has ended is no error."""
        ...


class Unstarted:
    """Of a runtime that starts nothing: its tools are always there, no call makes another wait, and nothing has to be ended."""

    async def is_alive(self, running: Running) -> bool:  # noqa: ARG002 - nobody knows but by asking
        return True

    async def is_idle(self, running: Running, source: Contract) -> bool:  # noqa: ARG002 - it is not ours to end
        return True

    async def stop(self, running: Running) -> None:
        """Nothing was started."""


@runtime_checkable
class Mortal(Protocol):
    """A runtime whose tools are processes, which can end by themselves. Without this, a tool is always there."""

    async def ended(self, running: Running) -> str:
        """Wait until it has ended, by itself or stopped, and say how: `exited with code 1`."""
        ...


@runtime_checkable
class Examined(Protocol):
    """A runtime whose tools can be asked how they are."""

    async def vitals(self, running: Running, source: Any, timeout_s: float) -> Vitals:
        """Ask once, for at most so many seconds."""
        ...


@runtime_checkable
class Expiring(Protocol):
    """A runtime whose unused tools are not kept for longer than this."""

    @property
    def ttl_s(self) -> float: ...


@runtime_checkable
class Installing(Protocol):
    """A runtime that leaves no process, but whose start may take minutes: until then its tools are not ready."""

    installs: Literal[True]


@runtime_checkable
class Offering(Protocol):
    """A runtime whose tools are of servers that have more to offer."""

    async def offered(self, running: Running, source: Any, offer: Offer) -> dict[str, JsonValue]:
        """The server's answer: `{result}`, or `{error: {code, message, data}}` also where it has no such thing. Raises NotSent."""
        ...


@runtime_checkable
class PerCall(Protocol):
    """A runtime that runs some tools as a process for each call, which is ended with all it started before a cancelled call returns."""

    def ends_with_call(self, running: Running) -> bool: ...


AnyRuntime: TypeAlias = Runtime[Any]
"""A runtime picked by a source's tag: that the two belong together is known to the registry, not to the type checker."""
