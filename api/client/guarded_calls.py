"""A client that refuses calls, messages and tasks while they cannot be recorded."""

import uuid
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

from temporalio.client import Client

from api.client.recording import Recording, UnrecordableError
from api.json_object import JsonObject
from toolagent.client.call_ids import new_call_id
from toolagent.client.chats import Chats
from toolagent.client.failures import (
    AnswerPendingError,
    CallRefusedError,
    ChatUnreachableError,
    ControlFailedError,
    MakingUnreachableError,
)
from toolagent.client.handles import BatchHandle, CallHandle
from toolagent.client.making import Making
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.chats import ChatMessage, ChatReply
from toolagent.contracts.making import Guidance, MakeRequest
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.tasks import TaskView
from toolagent.core.calls.batches import keyed_batch_id
from toolagent.core.calls.idempotency import keyed_call_id
from toolagent.core.calls.results import failed
from toolagent.core.failures import StoreUnwritableError


class GuardedChats(Chats):
    def __init__(self, client: Client, recording: Recording) -> None:
        super().__init__(client)
        self._recording = recording

    async def say(self, message: ChatMessage) -> ChatReply:
        with _told("Messages cannot be recorded now.", ChatUnreachableError):
            async with self._recording.recorded():
                return await super().say(message)

    async def close(self, chat_id: str) -> None:
        with _told("The chat cannot be closed now.", ChatUnreachableError):
            async with self._recording.recorded(looks=True):
                await super().close(chat_id)


class GuardedMaking(Making):
    def __init__(self, client: Client, recording: Recording) -> None:
        super().__init__(client)
        self._recording = recording

    async def start(self, request: MakeRequest) -> None:
        """Raises StoreUnwritableError if nothing was sent to Temporal yet."""
        try:
            self._recording.require()
        except UnrecordableError as error:
            raise StoreUnwritableError(error.cause, str(error), str(error)) from error
        with _told("Tasks cannot be recorded now.", MakingUnreachableError):
            async with self._recording.recorded():
                await super().start(request)

    async def cancel(self, task_id: str) -> bool:
        with _told("The end of a task cannot be recorded now.", MakingUnreachableError):
            async with self._recording.recorded(looks=True):
                return await super().cancel(task_id)

    async def guide(self, task_id: str, guidance: Guidance) -> bool:
        with _told("Messages cannot be recorded now.", MakingUnreachableError):
            async with self._recording.recorded():
                return await super().guide(task_id, guidance)


class GuardedCalls(ToolAgentClient):
    """The client of a front door. Calls accepted before go on when they can be recorded again."""

    def __init__(self, client: Client, recording: Recording, *, patience_s: float) -> None:
        super().__init__(client, patience_s=patience_s)
        self._recording, self.chats, self.making = recording, GuardedChats(client, recording), GuardedMaking(client, recording)

    async def start(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> CallHandle:
        keyed = keyed_call_id(call)
        own = keyed or call_id or new_call_id()
        async with self.recorded(own, call.tool_id):
            return await super().start(call, own, is_new=is_new or (keyed is None and call_id is None))

    async def start_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchHandle:
        own = keyed_batch_id(batch) or batch_id or f"batch-{uuid.uuid4().hex}"
        async with self.recorded(own, ""):
            return await super().start_batch(batch, own)

    async def result(self, call_id: str, tool_id: str = "") -> ToolResult:
        """As of any client, but raises while the end of the call cannot be recorded. The call goes on when it can."""
        async with self.recorded(call_id, tool_id, looks=True):
            return await super().result(call_id, tool_id)

    async def batch_end(self, batch_id: str) -> BatchEnd:
        async with self.recorded(batch_id, "", looks=True):
            return await super().batch_end(batch_id)

    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None:
        async with self.recorded(call_id, "", looks=True):
            return await super().task(call_id, workflow_id)

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
        async with self.recorded(call_id, "", looks=True):
            return await super().cancel(call_id, workflow_id)

    async def control(self, control: ToolControl) -> ToolRoute:
        try:
            self._recording.require()
        except UnrecordableError as error:
            raise ControlFailedError(_error(error)) from error
        return await super().control(control)

    @asynccontextmanager
    async def recorded(self, call_id: str, tool_id: str, *, looks: bool = False) -> AsyncGenerator[None]:
        """Raises CallRefusedError if nothing was sent to Temporal yet, otherwise AnswerPendingError."""
        try:
            async with self._recording.recorded(looks=looks):
                yield
        except UnrecordableError as error:
            result = failed(call_id, tool_id, _error(error), datetime.now(UTC))
            raise (AnswerPendingError if error.was_sent else CallRefusedError)(result) from error


@contextmanager
def _told(what: str, failure: Callable[[str], Exception]) -> Generator[None]:
    """Raises `failure`, given what cannot be done and why, if the block cannot be recorded."""
    try:
        yield
    except UnrecordableError as error:
        raise failure(f"{what} {error}") from error


def _error(error: UnrecordableError) -> ToolError:
    if error.was_sent:
        message, details = "Whether it was taken can be asked for by its id.", JsonObject()
    else:
        message, details = "Nothing was done; ask again when the operator has seen to it.", JsonObject(sent=False)
    return ToolError(
        type=ErrorType.UNAVAILABLE, message=f"Calls cannot be recorded now. {error} {message}", details={"cause": error.cause, **details}
    )
