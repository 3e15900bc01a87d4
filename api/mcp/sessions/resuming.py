"""GET of a session: the rest of a request's stream after a break, or notifications of changes."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

import anyio
from mcp.server.subscriptions import ResourceUpdated, ServerEvent
from mcp_types import INVALID_PARAMS, ErrorData

from api.json_object import JsonObject
from api.mcp.calls.answers import Answers
from api.mcp.calls.following import Followed, Following
from api.mcp.calls.request_state import RequestStates
from api.mcp.calls.underway import LostCallError, outcome_unknown
from api.mcp.catalog import ToolCatalog
from api.mcp.changes import TOOL_URI, Changes, Standing
from api.mcp.kept_sessions import ClientSessions
from api.mcp.offers.watching import Watching
from api.mcp.sessions.events import CallPoint, Event, EventStream
from api.mcp.sessions.requests import question_message
from api.mcp.sessions.rpc import ending, error_message, no_request, result_message
from api.ports import CallRecords
from toolagent.contracts.call_messages import CallMessage
from toolagent.contracts.calls import ToolResult
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.mcp import McpSession

_MOST_UPDATES = 64
_MOST_STANDING = 1024
"""The most streams of notifications, as many as the SDK allows in the newer revision."""

_LOOKED_S = 15.0
"""How often an open stream looks whether its session exists, which counts as use."""


class Resuming:
    def __init__(
        self,
        following: Following,
        records: CallRecords,
        catalog: ToolCatalog,
        answers: Answers,
        changes: Changes,
        sessions: ClientSessions,
        states: RequestStates,
        watching: Watching,
    ) -> None:
        self._following, self._records, self._catalog, self._answers = following, records, catalog, answers
        self._changes, self._sessions, self._states = changes, sessions, states
        self._watching = watching
        self._standing_streams = 0

    async def run(self, session: McpSession, last_event_id: str | None, stream: EventStream, stopping: asyncio.Event) -> None:
        """Stream until there is no more, the client goes, the session is closed, or the service stops.

        Raises RpcRefusal for an event id of another session, and if too many streams are open.
        """
        point = CallPoint.of(last_event_id, self._states) if last_event_id else None
        if point is not None and point.session_id != session.session_id:
            raise no_request("Last-Event-ID: it is an event of another session.")
        if last_event_id and point is None and Standing.of(last_event_id) is None:
            raise no_request("Last-Event-ID: it is no event of this server. Send the request again, or listen without it.")
        if point is not None:
            work = asyncio.create_task(self._rest(session, point, stream), name=f"rest of {point.call_id}")
        elif self._standing_streams >= _MOST_STANDING:
            raise no_request(f"{_MOST_STANDING} streams stand open here. Come again later.", HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            work = asyncio.create_task(self._standing(session, last_event_id, stream), name="what MCP clients are told of")
        is_standing = point is None
        self._standing_streams += is_standing
        watched = asyncio.create_task(self._while_open(session.session_id, work), name=f"while {session.session_id} is open")
        try:
            await stream.follow(watched, stopping)
        finally:
            watched.cancel()
            work.cancel()
            self._standing_streams -= is_standing
        if not stream.has_begun:
            raise ending()
        await stream.end()

    async def leave(self, session: McpSession) -> None:
        """Leave the subscriptions of a closed session."""
        await self._watching.leave_all(session)

    async def _while_open(self, session_id: str, work: "asyncio.Task[None]") -> None:
        """Returns when the work ends, or its session is closed."""
        while not (await asyncio.wait((work,), timeout=_LOOKED_S))[0]:
            with suppress(StoreUnavailableError):
                if await self._sessions.get(session_id) is None:
                    return
        work.result()

    async def _rest(self, session: McpSession, point: CallPoint, stream: EventStream) -> None:
        async def tell(method: str, params: JsonObject, position: int) -> None:
            await stream.write(Event({"jsonrpc": "2.0", "method": method, "params": params}, point.at(position).event_id(self._states)))

        async def ask(question: CallMessage) -> bool:
            event_id = point.at(question.position).event_id(self._states)
            await stream.write(Event(question_message(question, session, self._states), event_id))
            return True

        await stream.write(Event(None))
        followed = Followed(point.call_id, tell, ask, point.token, hears=True, position=point.position)
        try:
            result = await self._following.follow(followed)
        except LostCallError:
            lost = ErrorData(code=INVALID_PARAMS, message=outcome_unknown(point.call_id))
            await stream.write(Event(error_message(point.request_id, lost)))
            return
        if isinstance(result, ToolResult):
            record = await self._records.get(point.call_id)
            entry = await self._catalog.find(record.tool_id) if record else None
            await stream.write(Event(result_message(point.request_id, await self._answers.of(result, entry))))

    async def _standing(self, session: McpSession, last_event_id: str | None, stream: EventStream) -> None:
        async with self._changes.heard() as (standing, now), anyio.create_task_group() as tasks:
            seen = Standing.of(last_event_id) if last_event_id else None
            # It is not known which versions a returning client has seen.
            known, versions = (seen, None) if seen else (standing, now)
            await stream.write(Event(None, known.event_id))
            tasks.start_soon(self._updates, session.session_id, stream)
            tasks.start_soon(self._watching.watch_all, session)
            while True:
                standing, now = await self._changes.after(known), await self._changes.versions()
                session = await self._sessions.get(session.session_id) or session
                for told in _told(known, standing, session, versions, now):
                    await stream.write(Event(told, standing.event_id))
                known, versions = standing, now

    async def _updates(self, session_id: str, stream: EventStream) -> None:
        """Tell of changed resources of registered servers. Changes while no client listens are not kept."""
        updated: asyncio.Queue[str] = asyncio.Queue(_MOST_UPDATES)

        def hear(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and not event.uri.startswith(TOOL_URI) and not updated.full():
                updated.put_nowait(event.uri)

        stop = self._changes.bus.subscribe(hear)
        try:
            while True:
                uri, session = await updated.get(), await self._sessions.get(session_id)
                if session is not None and uri in session.subscriptions:
                    await stream.write(Event(_updated(uri)))
        finally:
            stop()


def _told(
    before: Standing, standing: Standing, session: McpSession, versions: Mapping[str, str] | None, now: Mapping[str, str]
) -> list[JsonObject]:
    """The notifications for a client that knew another state. Without known `versions`, all subscribed tools count as changed."""
    lists = ["tools", "resources"] if before.catalog != standing.catalog else []
    lists += ["prompts"] if before.groups != standing.groups else []
    told: list[JsonObject] = [{"jsonrpc": "2.0", "method": f"notifications/{one}/list_changed"} for one in lists]
    ids = [uri.removeprefix(TOOL_URI) for uri in session.subscriptions if uri.startswith(TOOL_URI)]
    return told + [_updated(f"{TOOL_URI}{one}") for one in ids if versions is None or versions.get(one) != now.get(one)]


def _updated(uri: str) -> JsonObject:
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
