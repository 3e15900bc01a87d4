"""Prompts, resources and completions of the MCP servers in the catalog, passed through to MCP clients."""

import asyncio
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, cast

from pydantic import JsonValue

from engine.runtimes.failures import NotSent
from engine.runtimes.mcp.offers import STARTED, server_name
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Offer
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.sources import McpSource
from toolagent.core.failures import StoreUnavailableError

_ANSWERED_S = 20.0
"""The longest time of an answer, including the start of the server."""

_LISTED_S = 5.0
"""How long a listing waits for its servers. Later answers appear in the next listing."""

_SOON_S = 0.5
"""How long a listing waits for servers with an old, but not outdated, answer."""

_FRESH_S = 10.0
_AGAIN_S = 60.0
"""Pause before another request to a server that was not reached."""

_MOST_PAGES = 20
_MOST_ITEMS = 1_000
_MOST_BYTES = 2 * 1_048_576
"""Limits of one kind of one server. The page that exceeds them is left out, with all later ones."""

_NEVER = float("-inf")
_AT_ONCE = 4
_UNREACHED = -32_603

_WATCHES = ("resources/subscribe", "resources/unsubscribe")

Kind: TypeAlias = Literal["prompts", "resources", "resourceTemplates"]

_METHODS: Mapping[Kind, str] = {
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}

_CHANGED: Mapping[str, tuple[Kind, ...]] = {
    "notifications/prompts/list_changed": ("prompts",),
    "notifications/resources/list_changed": ("resources", "resourceTemplates"),
}

Changed: TypeAlias = Callable[[str, Mapping[str, JsonValue]], None]
Item: TypeAlias = dict[str, JsonValue]


class McpTools(Protocol):
    async def of_source_type(self, source_type: str) -> tuple[ToolEntry, ...]: ...


class CatalogNumber(Protocol):
    async def number(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Listed:
    """An item in the form of its server, and the name of the server."""

    server: str
    item: Item


@dataclass(frozen=True, slots=True)
class _Known:
    items: tuple[Item, ...]
    asked_at: float
    at: float
    is_reached: bool


class Upstreams:
    """A server has its registered name, or else that of its process, URL or tool.

    Requests start servers, and subscriptions are renewed when a server starts anew. Lists are cached for some seconds, or until they or the
    server change. A listing waits only once for a slow server: until it answers, its old list counts.
    """

    def __init__(self, tools: McpTools, catalog: CatalogNumber, supervisor: Supervisor) -> None:
        self._tools, self._catalog, self._supervisor = tools, catalog, supervisor
        self._number = -1
        self._servers: dict[str, ToolEntry] = {}
        self._known: dict[tuple[str, Kind], _Known] = {}
        self._said_at: dict[tuple[str, Kind], float] = {}
        self._changed_at: dict[tuple[str, Kind], float] = {}
        self._waited_at: dict[tuple[str, Kind], float] = {}
        self._listing: dict[tuple[str, Kind], asyncio.Task[None]] = {}
        self._watched: dict[str, set[str]] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._listeners: list[Changed] = []

    async def servers(self) -> tuple[str, ...]:
        """Names of servers with an active tool. Raises StoreUnavailableError."""
        number = await self._catalog.number()
        if number != self._number:
            entries = await self._tools.of_source_type("mcp")
            active = [entry for entry in entries if entry.manifest.status is ToolStatus.ACTIVE]
            before, self._servers = self._servers, {_name_of(entry): entry for entry in reversed(active)}
            kept = {name for name, entry in self._servers.items() if before.get(name) == entry}
            self._known = {key: known for key, known in self._known.items() if key[0] in kept}
            for times in (self._waited_at, self._said_at, self._changed_at):
                for key in [key for key in times if key[0] not in kept]:
                    del times[key]
            self._watched = {name: uris for name, uris in self._watched.items() if name in self._servers}
            self._number = number
        return tuple(sorted(self._servers))

    async def listed(self, kind: Kind) -> tuple[Listed, ...]:
        """The lists of all servers that answer in time. Raises StoreUnavailableError."""
        names = await self.servers()
        due = {name: self._renewing(name, kind) for name in names if self._is_due(name, kind)}
        new = {name for name in due if not self._is_usable(name, kind)}
        awaited = {name for name in new if self._waited_at.get((name, kind), _NEVER) <= self._changed_at.get((name, kind), _NEVER)}
        old = [task for name, task in due.items() if name not in new and self._known[name, kind].is_reached]
        if awaited:
            late = (await asyncio.wait([due[name] for name in awaited], timeout=_LISTED_S))[1]
            self._waited_at |= {(name, kind): time.monotonic() for name in awaited if due[name] in late}
        if old:
            await asyncio.wait(old, timeout=_SOON_S)
        known = ((name, self._known.get((name, kind))) for name in names)
        return tuple(Listed(name, item) for name, found in known if found is not None for item in found.items)

    async def ask(self, server: str, method: str, params: Mapping[str, JsonValue], listens: Listener | None = None) -> Item:
        """The answer of a server to a request of MCP: `{result}`, or `{error: {code, message, data}}`.

        A result may be one that asks for more (`resultType: input_required`). Raises StoreUnavailableError.
        """
        await self.servers()
        if (entry := self._servers.get(server)) is None:
            return _error(f"There is no server {server!r}.")
        answer = await self._asked(entry, Offer(method, dict(params), _ANSWERED_S, listens or Listener()))
        if method in _WATCHES and "result" in answer:
            watched = self._watched.setdefault(server, set())
            (watched.add if method == "resources/subscribe" else watched.discard)(str(params.get("uri")))
        return answer

    def note_change(self, server: str, method: str, params: Mapping[str, JsonValue]) -> None:
        """Notes a notification of a server outside calls: a list, or a subscribed resource, has changed.

        The cached list is no longer used. If the same change comes again within some seconds, the server is asked again, but the cached
        list counts until it answers.
        """
        if method == STARTED:
            if self._watched.get(server) and server not in self._watching:
                task = self._watching[server] = asyncio.create_task(self._watch_again(server), name=f"subscriptions at {server}")
                task.add_done_callback(lambda _: self._watching.pop(server, None))
            return
        said_at = time.monotonic()
        for kind in _CHANGED.get(method, ()) if server in self._servers else ():
            key = (server, kind)
            self._said_at[key] = said_at
            if said_at - self._changed_at.get(key, _NEVER) > _FRESH_S:
                self._changed_at[key] = said_at
        for listener in tuple(self._listeners):
            listener(method, params)

    @contextmanager
    def heard_by(self, listener: Changed) -> Generator[None]:
        """Calls `listener` with method and parameters of each change during the block. It must not block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def close(self) -> None:
        tasks = [*self._listing.values(), *self._watching.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch_again(self, server: str) -> None:
        """Renews the subscriptions at a server that has started anew."""
        for uri in tuple(self._watched[server]):
            if (entry := self._servers.get(server)) is None:
                return
            answer = await self._asked(entry, Offer("resources/subscribe", {"uri": uri}, _ANSWERED_S))
            if cast("Item", answer.get("error") or {}).get("code") == _UNREACHED:
                return

    def _is_due(self, name: str, kind: Kind) -> bool:
        known = self._known.get((name, kind))
        if known is None or known.asked_at <= self._said_at.get((name, kind), _NEVER):
            return True
        return time.monotonic() - known.at > (_FRESH_S if known.is_reached else _AGAIN_S)

    def _is_usable(self, name: str, kind: Kind) -> bool:
        """Whether there is a list, and its server has reported no change since."""
        known = self._known.get((name, kind))
        return known is not None and known.asked_at > self._changed_at.get((name, kind), _NEVER)

    def _renewing(self, name: str, kind: Kind) -> "asyncio.Task[None]":
        key = (name, kind)
        task = self._listing.get(key)
        if task is None or task.done():  # its callback comes a moment later than its list
            task = self._listing[key] = asyncio.create_task(self._renew(name, kind), name=f"{kind} of {name}")
            task.add_done_callback(lambda ended: self._listing.pop(key, None) if self._listing.get(key) is ended else None)
        return task

    async def _renew(self, name: str, kind: Kind) -> None:
        async with self._slots:
            began_at, entry = time.monotonic(), self._servers.get(name)
            items = await self._items(entry, kind) if entry is not None else None
            if self._servers.get(name) == entry:
                self._known[name, kind] = _Known(items or (), began_at, time.monotonic(), items is not None)

    async def _items(self, entry: ToolEntry, kind: Kind) -> tuple[Item, ...] | None:
        """None: the server was not reached."""
        items: list[Item] = []
        cursors = set[str]()
        params: Item = {}
        size = 0
        for _ in range(_MOST_PAGES):
            match await self._asked(entry, Offer(_METHODS[kind], params, _ANSWERED_S)):
                case {"result": dict() as page}:
                    size += await asyncio.to_thread(_size_of, cast("Item", page))
                    if size > _MOST_BYTES:
                        break
                    items += _items_of(cast("Item", page).get(kind))
                    following = cast("Item", page).get("nextCursor")
                case {"error": {"code": code}}:
                    return None if code == _UNREACHED else tuple(items)
                case _:
                    return tuple(items)
            if not isinstance(following, str) or following in cursors or len(items) >= _MOST_ITEMS:
                break
            cursors.add(following)
            params = {"cursor": following}
        return tuple(items[:_MOST_ITEMS])

    async def _asked(self, entry: ToolEntry, offer: Offer) -> Item:
        try:
            async with asyncio.timeout(_ANSWERED_S):
                return await self._supervisor.offered(entry, offer)
        except NotSent as failure:
            return _error(f"The server was not reached: {failure.message}")
        except TimeoutError:
            return _error(f"The server did not answer within {_ANSWERED_S:g} s.")
        except StoreUnavailableError as error:
            return _error(f"The server was not started: {error}")


def _name_of(entry: ToolEntry) -> str:
    source = next(source for source in entry.sources if isinstance(source, McpSource))
    return server_name(source, entry.manifest.tool_id)


def _items_of(listed: JsonValue) -> Sequence[Item]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _size_of(page: Item) -> int:
    return len(json.dumps(page))


def _error(message: str) -> Item:
    return {"error": {"code": _UNREACHED, "message": message}}
