"""Follows one prompt from the queue to its end: the WebSocket tells progress, the history decides."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal, TypeAlias

import httpx
from pydantic import BaseModel, JsonValue, ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from engine.network.tls import usual_tls
from engine.runtimes.builtin.runcomfy.comfy import Comfy, ComfyUnreachable, Ended, Queued
from engine.runtimes.builtin.runcomfy.peer import Peer
from engine.runtimes.builtin.runcomfy.workflow import Prompt
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import port_of
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType

_LOOK_S = 5.0
"""Pause between looks at the history while the WebSocket is silent or lost."""
_WRITTEN_S = 0.2
"""Time for the history: ComfyUI announces the end of a prompt before it writes its history."""
_LOOKS = 5
_OPEN_S, _INTERRUPT_S = 10.0, 5.0
_MAX_MESSAGE = 4 << 20
_LAST = frozenset({"execution_success", "execution_error", "execution_interrupted"})

_Heard: TypeAlias = Literal["silence", "end", "lost"]

IsGone = Callable[[], Awaitable[bool]]
"""Asks the provider whether the server is gone."""


class _Message(BaseModel):
    type: str
    data: dict[str, JsonValue] = {}


class PromptRun:
    """`is_gone` is asked if ComfyUI does not answer."""

    def __init__(self, comfy: Comfy, peer: Peer, progress: Progress, is_gone: IsGone, look_s: float = _LOOK_S) -> None:
        self._comfy, self._peer, self._progress, self._is_gone, self._look_s = comfy, peer, progress, is_gone, look_s

    async def run(self, prompt: Prompt, client_id: str) -> tuple[Queued, Ended]:
        """The queued prompt, and how it ended. A cancellation interrupts the prompt.

        Raises CallFailed: the prompt was refused, failed in a node, or was lost with its server.
        """
        # The WebSocket is opened first, so that no message is missed.
        async with self._messages(client_id) as socket:
            queued = await self._comfy.queue(prompt, client_id)
            prompt_id = queued.prompt_id
            self._progress(f"queued as {prompt_id}")
            try:
                ended = await self._followed(socket, prompt_id, prompt)
                while ended is None:
                    await asyncio.sleep(self._look_s)
                    async with self._messages(client_id) as again:
                        ended = await self._followed(again, prompt_id, prompt)
            except asyncio.CancelledError:
                with suppress(TimeoutError, ComfyUnreachable, CallFailed):
                    async with asyncio.timeout(_INTERRUPT_S):
                        await self._comfy.interrupt(prompt_id)
                raise
        _check(prompt_id, ended)
        return queued, ended

    async def _followed(self, socket: ClientConnection | None, prompt_id: str, prompt: Prompt) -> Ended | None:
        """How it ended; None if the WebSocket was lost before."""
        heard: _Heard = "lost" if socket is None else "silence"
        while True:
            if socket is not None and heard == "silence":
                heard = await self._listen(socket, prompt_id, prompt)
            ended = await self._looked(prompt_id)
            if ended is not None or heard == "lost":
                return ended
            if heard == "end":
                await asyncio.sleep(_WRITTEN_S)

    async def _looked(self, prompt_id: str) -> Ended | None:
        try:
            return await self._known(prompt_id)
        except ComfyUnreachable as error:
            if await self._is_gone():
                message = "The server disappeared while the workflow ran on it; its results are lost. Launch another one."
                raise CallFailed(ErrorType.EXECUTION_ERROR, message, {"prompt_id": prompt_id, "cause": "server_gone"}) from error
            self._progress("ComfyUI does not answer; asking again")
            return None

    async def _known(self, prompt_id: str) -> Ended | None:
        """How it ended; None while it waits or runs. Raises CallFailed if ComfyUI does not know it any more."""
        ended = await self._comfy.ended(prompt_id)
        if ended is not None or await self._comfy.is_queued(prompt_id):
            return ended
        # It may have ended between the two requests, or will be in the history in a moment.
        for _ in range(_LOOKS):
            await asyncio.sleep(_WRITTEN_S)
            if (ended := await self._comfy.ended(prompt_id)) is not None:
                return ended
        message = "ComfyUI does not know the workflow any more: it was started anew, or its history was cleared. Execute it again."
        raise CallFailed(ErrorType.EXECUTION_ERROR, message, {"prompt_id": prompt_id, "cause": "prompt_lost"})

    async def _listen(self, socket: ClientConnection, prompt_id: str, prompt: Prompt) -> _Heard:
        """Listens until the prompt has ended, nothing came for a while, or the connection is lost."""
        try:
            while True:
                async with asyncio.timeout(self._look_s):
                    message = await socket.recv()
                if isinstance(message, str) and self._heard(message, prompt_id, prompt):
                    return "end"
        except TimeoutError:
            return "silence"
        except (WebSocketException, OSError):
            self._progress("the WebSocket was lost; looking at the history")
            return "lost"

    def _heard(self, message: str, prompt_id: str, prompt: Prompt) -> bool:
        """Whether the message says that the prompt has ended. Other messages are ignored."""
        try:
            told = _Message.model_validate_json(message)
        except ValidationError:
            return False
        if told.data.get("prompt_id") != prompt_id:
            return False
        if (said := _said(told, prompt)) is not None:
            self._progress(said)
        return told.type in _LAST

    @asynccontextmanager
    async def _messages(self, client_id: str) -> AsyncGenerator[ClientConnection | None]:
        """None if it cannot be opened: the history alone decides."""
        socket = await self._opened(client_id)
        try:
            yield socket
        finally:
            if socket is not None:
                await socket.close()

    async def _opened(self, client_id: str) -> ClientConnection | None:
        url = httpx.URL(self._comfy.url)
        addresses = await self._peer.destinations.of(url)
        scheme, tls = ("wss", usual_tls()) if url.scheme == "https" else ("ws", None)
        target = f"{scheme}://{url.netloc.decode()}{url.path.rstrip('/')}/ws?clientId={client_id}"
        try:
            return await connect(
                target, host=str(addresses[0]), port=port_of(url), proxy=None, open_timeout=_OPEN_S, max_size=_MAX_MESSAGE, ssl=tls
            )
        except (WebSocketException, OSError, TimeoutError, IndexError, ValueError):  # ValueError: a redirect
            return None


def _said(told: _Message, prompt: Prompt) -> str | None:
    node = told.data.get("node")
    match told.type:
        case "execution_start":
            return "started"
        case "executing" if node is not None:
            return _named(str(node), prompt)
        case "progress":
            return f"{_named(str(node), prompt)}: {told.data.get('value')} of {told.data.get('max')}"
        case "execution_success":
            return "executed; fetching what it made"
        case _:
            return None


def _named(node: str, prompt: Prompt) -> str:
    entry = prompt.get(node)
    return f"node {node} ({entry.get('class_type')})" if isinstance(entry, dict) else f"node {node}"


def _check(prompt_id: str, ended: Ended) -> None:
    """Raises CallFailed unless it succeeded."""
    if ended.status is None or ended.status.completed or ended.status.status_str == "success":
        return
    details: dict[str, JsonValue] = {"prompt_id": prompt_id}
    for entry in ended.status.messages:
        match entry:
            case ["execution_error", dict() as told]:
                where = f"node {told.get('node_id')} ({told.get('node_type')})"
                kept = {name: told[name] for name in ("node_id", "node_type", "exception_type", "exception_message") if name in told}
                message = f"The workflow failed in {where}: {told.get('exception_message')}"
                raise CallFailed(ErrorType.EXECUTION_ERROR, message, {**details, **kept})
            case ["execution_interrupted", _]:
                raise CallFailed(
                    ErrorType.EXECUTION_ERROR, "The workflow was interrupted on its server.", {**details, "cause": "interrupted"}
                )
            case _:
                pass
    raise CallFailed(ErrorType.EXECUTION_ERROR, "The workflow failed; ComfyUI does not say why.", details)
