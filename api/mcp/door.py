"""`/mcp`: both revisions of streamable HTTP, distinguished by their header."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from api.errors import Refusal
from api.mcp.calls.answers import Answers
from api.mcp.calls.calling import Calling
from api.mcp.calls.following import Following
from api.mcp.calls.listing import Listing
from api.mcp.calls.request_state import RequestStates
from api.mcp.calls.tasks import Tasks
from api.mcp.calls.underway import Underway
from api.mcp.catalog import ToolCatalog
from api.mcp.changes import Changes
from api.mcp.kept_sessions import ClientSessions
from api.mcp.offers.passing import Passing
from api.mcp.offers.prompts import Prompts
from api.mcp.offers.resources import Resources
from api.mcp.offers.watching import Watching
from api.mcp.server import Handlers, make_server, options_of
from api.mcp.sessions.door import SessionDoor
from api.mcp.sessions.resuming import Resuming
from api.mcp.sessions.rpc import VERSION_HEADER, RpcRefusal, no_request, not_json, require_one_revision
from api.mcp.visit import Visit, put_visit, selection_of
from api.ports import Dependencies
from api.problems import ProblemKind
from api.reading.strict_json import parsed_json, require_type

_VERSION = "1"
_METHODS = "GET, POST, DELETE"


class McpDoor:
    """An ASGI application. It answers while `running`."""

    def __init__(self, dependencies: Dependencies, stopping: asyncio.Event) -> None:
        ports, self._stopping = dependencies.mcp, stopping
        self._max_values = dependencies.limits.max_values
        catalog = ToolCatalog(dependencies.registry, dependencies.groups, ports.catalog_number)
        self._underway = Underway(dependencies.client, dependencies.calls)
        following = Following(self._underway, dependencies.call_messages)
        answers, sessions = Answers(dependencies.files), ClientSessions(ports.sessions)
        states = RequestStates(ports.state_key)
        tasks = Tasks(dependencies.client, dependencies.calls, catalog, self._underway, following, answers, sessions)
        calling = Calling(
            catalog,
            self._underway,
            following,
            answers,
            tasks,
            states,
            dependencies.limits,
            task_after_s=ports.task_after_s,
            is_stopping=stopping.is_set,
        )
        self._changes, passing = Changes(catalog, dependencies.groups), Passing(dependencies.upstreams)
        self._upstreams, self._watching = dependencies.upstreams, Watching(passing, ports.sessions)
        handlers = Handlers(
            catalog,
            Listing(catalog, dependencies.matching, calling),
            tasks,
            Resources(catalog, dependencies.files, answers, sessions, passing, self._watching),
            Prompts(catalog, dependencies.groups, passing),
            sessions,
            self._changes,
        )
        server = make_server(handlers, _VERSION)
        # The newer revision has no sessions, so the SDK's manager only handles single requests.
        self._manager = StreamableHTTPSessionManager(server, stateless=True)
        resuming = Resuming(following, dependencies.calls, catalog, answers, self._changes, sessions, states, self._watching)
        self._sessions = SessionDoor(
            server, options_of(server), ports.sessions, sessions, dependencies.call_messages, self._underway, resuming, states, stopping
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Until the block ends."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._underway.close)
            stack.push_async_callback(self._sessions.close)
            stack.enter_context(self._upstreams.heard_by(self._changes.note))
            await stack.enter_async_context(self._changes.watched())
            await stack.enter_async_context(self._watching.looked_after())
            await stack.enter_async_context(self._managed())
            # From here on, a client that goes away has not cancelled its request.
            stack.callback(self._stopping.set)
            yield

    @asynccontextmanager
    async def _managed(self) -> AsyncGenerator[None]:
        """Runs the SDK's manager in a task of its own, because it must be left by the task that entered it."""
        begun, over = asyncio.Event(), asyncio.Event()

        async def manage() -> None:
            async with self._manager.run():
                begun.set()
                await over.wait()

        async def end_listening() -> None:
            await self._stopping.wait()
            self._changes.listen.close()

        task, ending = asyncio.create_task(manage(), name="mcp manager"), asyncio.create_task(end_listening(), name="end listening")
        await begun.wait()
        try:
            yield
        finally:
            over.set()
            ending.cancel()
            await asyncio.gather(task, ending, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            await self._answer(request, send)
        except RpcRefusal as refusal:
            await refusal.response()(scope, receive, send)

    async def _answer(self, request: Request, send: Send) -> None:
        version = request.headers.get(VERSION_HEADER)
        is_modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        match request.method:
            case "POST":
                body = await request.body()
                value = await self._read(request, body)
                require_one_revision(version, value)
                if not is_modern:
                    await self._sessions.post(request, value, send)
                    return
                put_visit(request.scope, Visit(selection_of(request)))
                request.scope["headers"] = [(name, value.strip()) for name, value in request.scope["headers"]]
                await self._manager.handle_request(request.scope, _again(body, request.receive), send)
            case "GET" if not is_modern:
                await self._sessions.get(request, send)
            case "DELETE" if not is_modern:
                await self._sessions.delete(request, send)
            case _:
                allowed = {"Allow": "POST" if is_modern else _METHODS}
                await Response(status_code=405, headers=allowed)(request.scope, request.receive, send)

    async def _read(self, request: Request, body: bytes) -> JsonValue:
        """Raises RpcRefusal for a body that is not strict JSON."""
        try:
            require_type(request, "application/json")
            return await parsed_json(body, self._max_values)
        except Refusal as refusal:
            if refusal.kind is ProblemKind.UNSUPPORTED_MEDIA_TYPE:
                raise no_request(refusal.detail, HTTPStatus.UNSUPPORTED_MEDIA_TYPE) from refusal
            raise not_json(refusal.detail) from refusal


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body again."""
    first = True

    async def read() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return read
