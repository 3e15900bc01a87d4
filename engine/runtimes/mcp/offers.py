"""What servers offer besides tools: prompts, resources, completions, and news of their changes."""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias, cast

from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND, REQUEST_TIMEOUT
from pydantic import JsonValue

from engine.runtimes.mcp.answers import data_of, message_of
from engine.runtimes.mcp.codes import TOO_LARGE
from engine.runtimes.mcp.lines import is_larger
from engine.runtimes.mcp.serving import Server
from engine.runtimes.runtime import Offer
from engine.runtimes.secrecy import masked
from toolagent.contracts.sources import McpSource
from toolagent.core.texts import well_formed_value

_LONGEST_MESSAGE = 4096

_OF_PROMPTS, _OF_RESOURCES, _OF_COMPLETIONS = "prompts", "resources", "completions"

_CAPABILITIES: Mapping[str, str] = {
    "prompts/list": _OF_PROMPTS,
    "prompts/get": _OF_PROMPTS,
    "resources/list": _OF_RESOURCES,
    "resources/templates/list": _OF_RESOURCES,
    "resources/read": _OF_RESOURCES,
    "resources/subscribe": _OF_RESOURCES,
    "resources/unsubscribe": _OF_RESOURCES,
    "completion/complete": _OF_COMPLETIONS,
}
"""The methods that are passed on, and the capability that a server declares for each."""

_WATCHES: Mapping[str, bool] = {"resources/subscribe": True, "resources/unsubscribe": False}

_LARGEST = 4 * 1_048_576
"""The most characters and values of an answer that is passed on."""

Changed: TypeAlias = Callable[[str, str, Mapping[str, JsonValue]], None]
"""Called with the server's name, the method and the parameters of a notification."""

STARTED = "tool-agent/started"
"""Our own notification: the server has started, and knows no subscriptions."""


def server_name(source: McpSource, tool_id: str) -> str:
    """The registered name, or else the process, URL or tool id."""
    return source.server or source.process or (source.url or "").partition("?")[0] or tool_id


class Changes:
    """Servers' notifications that belong to no call: a resource or a list has changed."""

    def __init__(self) -> None:
        self._listeners: list[Changed] = []

    def say(self, server: str, method: str, params: Mapping[str, JsonValue]) -> None:
        for listener in tuple(self._listeners):
            listener(server, method, params)

    @contextlib.contextmanager
    def heard_by(self, listener: Changed) -> Generator[None]:
        """Calls the listener, which must not block, while the block runs."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


async def offered_by(server: Server, offer: Offer) -> dict[str, JsonValue]:
    """The server's answer: `{result}` or `{error}`."""
    capability = _CAPABILITIES.get(offer.method)
    if capability is None or getattr(server.session.capabilities, capability) is None:
        return _error(METHOD_NOT_FOUND, f"This server has no {offer.method}.")
    try:
        async with asyncio.timeout(offer.timeout_s):
            result = await _asked(server, offer)
    except TimeoutError:
        return _error(REQUEST_TIMEOUT, f"The server did not answer within {offer.timeout_s:g} s.")
    except MCPError as error:
        return _error(error.code, message_of(error, server.secrets), data_of(error, server.secrets))
    if await asyncio.to_thread(is_larger, result, _LARGEST):
        return _error(TOO_LARGE, f"The server's answer to {offer.method} is not passed on: it is larger than {_LARGEST} bytes of JSON.")
    return {"result": await asyncio.to_thread(_shown, result, server.secrets)}


def _shown(result: dict[str, JsonValue], secrets: Sequence[str]) -> JsonValue:
    """Blocks."""
    return masked(well_formed_value(cast("JsonValue", result)), secrets)


async def _asked(server: Server, offer: Offer) -> dict[str, JsonValue]:
    """Raises MCPError."""
    is_watched = _WATCHES.get(offer.method)
    if is_watched is None:
        return await server.session.once(offer.method, offer.params, offer.listens)
    await server.session.watch(str(offer.params.get("uri", "")), is_watched=is_watched)
    return {}


def _error(code: int, message: str, data: JsonValue = None) -> dict[str, JsonValue]:
    error: dict[str, JsonValue] = {"code": code, "message": message[:_LONGEST_MESSAGE]}
    return {"error": {**error, "data": data} if data is not None else error}
