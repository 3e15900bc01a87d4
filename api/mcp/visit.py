"""One request of an MCP client: the tools that its URL selects, its session, and the way back to the client."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from mcp.server.context import ServerRequestContext
from starlette.requests import Request
from starlette.types import Scope

from api.mcp.catalog import Selection
from toolagent.contracts.call_messages import CallMessage
from toolagent_service.contracts.mcp import McpSession

Ctx: TypeAlias = ServerRequestContext[Any, Any]
"""The SDK's context of a handler."""

Ask: TypeAlias = Callable[[CallMessage], Awaitable[bool]]
"""Asks the client; False if the question must be the answer to its request."""

_KEY = "toolagent.mcp"


async def _ask_nobody(_question: CallMessage) -> bool:
    return False


@dataclass(slots=True)
class Visit:
    """`session` exists in the older revision only. `call_id` is the call of the request, `position` its last message told."""

    selection: Selection
    session: McpSession | None = None
    ask: Ask = _ask_nobody
    call_id: str | None = None
    position: int = 0

    @property
    def conversation_id(self) -> str | None:
        return self.session.session_id if self.session else None


def put_visit(scope: Scope, visit: Visit) -> None:
    scope[_KEY] = visit


def visit_of(ctx: Ctx) -> Visit:
    """The visit of a request; an empty one if the request did not come through our door."""
    found: object = cast("Request", ctx.request).scope.get(_KEY) if ctx.request is not None else None
    return found if isinstance(found, Visit) else Visit(Selection())


def selection_of(request: Request) -> Selection:
    """The selection in the query of the URL."""
    query = request.query_params
    return Selection(query.get("tag"), query.get("namespace"), query.get("group"), search=query.get("mode") == "search")
