"""Functions over the windows for a model: description, schema of the arguments, and code."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from engine.disk.room import unwritten
from engine.im.client import ImClient
from engine.im.windows import WindowFull
from toolagent.contracts.im import ImFunctionOffer
from toolagent.core.failures import ImKeyUsedError, ImUseRefusedError

_MOST_READ = 50

_MOST_CHARACTERS = 32_768
"""Of a message: so many characters fit a frame of the usual size in any JSON form."""

A = TypeVar("A", bound="Arguments")


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ListWindows(Arguments):
    pass


class ReadMessages(Arguments):
    chat_id: Annotated[str, Field(description="One of list_windows.")]
    limit: Annotated[int, Field(ge=1, le=_MOST_READ, description="How many messages, the latest.")] = 20


class SendMessage(Arguments):
    chat_id: Annotated[str, Field(description="One of list_windows; the message goes to the last sender in that window.")]
    content: Annotated[str, Field(min_length=1, max_length=_MOST_CHARACTERS)]


@dataclass(frozen=True, slots=True)
class ImFunction(Generic[A]):
    name: str
    description: str
    arguments: type[A]
    do: Callable[[ImClient, A, str], Awaitable[dict[str, JsonValue]]]

    async def run(self, client: ImClient, given: dict[str, JsonValue], use: str) -> dict[str, JsonValue]:
        """Runs once for each `use`. Raises ImUseRefusedError, ImKeyUsedError."""
        try:
            arguments = self.arguments.model_validate(given)
        except ValidationError as error:
            faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False, include_input=False))
            raise ImUseRefusedError(f"{self.name} was not called: {'; '.join(faults)}") from error
        return await self.do(client, arguments, use)


async def _list(client: ImClient, _: ListWindows, __: str) -> dict[str, JsonValue]:
    windows: list[JsonValue] = [{"chat_id": name, "waiting": client.windows.waiting(name)} for name in client.windows.chat_ids]
    return {"connected": client.connected_since is not None, "windows": windows}


async def _read(client: ImClient, asked: ReadMessages, _: str) -> dict[str, JsonValue]:
    found = await client.windows.last(asked.chat_id, asked.limit)
    return {"messages": [message.model_dump(mode="json", exclude_none=True) for message in found]}


async def _send(client: ImClient, asked: SendMessage, use: str) -> dict[str, JsonValue]:
    if not await client.windows.last(asked.chat_id, 1):
        raise ImUseRefusedError(f"There is no window {asked.chat_id!r}: no message has come in for it. list_windows lists the windows.")
    try:
        is_new = await client.say(asked.chat_id, use, asked.content)
    except WindowFull as full:
        raise ImUseRefusedError(str(full)) from full
    if not is_new and await client.windows.has_said_otherwise(asked.chat_id, use, asked.content):
        raise ImKeyUsedError("It was used for other words. Choose a new one.")
    return {"status": "sent" if is_new else "sent before"}


_FUNCTIONS: tuple[ImFunction[Any], ...] = (
    ImFunction("list_windows", "The chats that have messages over IM, and how many messages wait in each.", ListWindows, _list),
    ImFunction("read_messages", "What was said last in a window, the oldest of it first.", ReadMessages, _read),
    ImFunction("send_message", "Say something in a window without being asked.", SendMessage, _send),
)


class ImFunctions:
    """The functions for the windows of one client."""

    def __init__(self, client: ImClient) -> None:
        self._client = client

    @property
    def offers(self) -> tuple[ImFunctionOffer, ...]:
        return tuple(
            ImFunctionOffer(name=one.name, description=one.description, input_schema=one.arguments.model_json_schema())
            for one in _FUNCTIONS
        )

    async def run(self, name: str, given: dict[str, JsonValue], use: str) -> dict[str, JsonValue]:
        """Runs once for each `use`. Raises ImUseRefusedError, ImKeyUsedError, StoreUnwritableError."""
        function = next((one for one in _FUNCTIONS if one.name == name), None)
        if function is None:
            raise ImUseRefusedError(f"There is no function {name[:80]!r}; there are: {', '.join(one.name for one in _FUNCTIONS)}.")
        try:
            return await function.run(self._client, given, use)
        except OSError as error:
            raise unwritten("The folder of IM windows", error) from error
