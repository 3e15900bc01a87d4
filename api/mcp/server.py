"""The SDK's server with our handlers."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CancelTaskRequestParams,
    EmptyResult,
    GetTaskRequestParams,
    PaginatedRequestParams,
    ServerTasksCapability,
    SetLevelRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from api.json_object import JsonObject
from api.mcp.calls.listing import Listing
from api.mcp.calls.tasks import Tasks, UpdateTaskParams
from api.mcp.catalog import ToolCatalog
from api.mcp.changes import Changes
from api.mcp.clients import TASKS
from api.mcp.kept_sessions import ClientSessions
from api.mcp.offers.prompts import Prompts
from api.mcp.offers.resources import Resources
from api.mcp.sessions.rpc import LONGEST_ID
from api.mcp.visit import Ctx, visit_of

P = TypeVar("P")

_INSTRUCTIONS = (
    "The tools of a Tool Agent. `?tag=`, `?namespace=` and `?group=` of the URL narrow them, `?mode=search` offers find_tools, "
    "describe_tool and call_tool instead of all. `_meta` of a result has the id of the call."
)
_FRESH = CacheHint(ttl_ms=1000, scope="private")
_CACHED = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover")


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of MCP's methods."""

    catalog: ToolCatalog
    listing: Listing
    tasks: Tasks
    resources: Resources
    prompts: Prompts
    sessions: ClientSessions
    changes: Changes


def make_server(handlers: Handlers, version: str) -> Server[dict[str, Any]]:
    async def listen_to(ctx: Ctx, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        uris = [str(uri) for uri in params.notifications.resource_subscriptions or ()]
        async with handlers.resources.listening(ctx, uris), handlers.changes.heard():
            return await handlers.changes.listen(ctx, params)

    async def set_level(ctx: Ctx, params: SetLevelRequestParams) -> EmptyResult:
        if (session := visit_of(ctx).session) is not None:
            await handlers.sessions.change(session.session_id, lambda now: now.model_copy(update={"log_level": params.level}))
        return EmptyResult()

    server: Server[dict[str, Any]] = Server(
        "tool-agent",
        version=version,
        title="Tool Agent",
        instructions=_INSTRUCTIONS,
        cache_hints=dict.fromkeys(_CACHED, _FRESH),
        get_tool_input_schema=handlers.catalog.input_schema,
        on_list_tools=_complete(handlers.listing.list),
        on_call_tool=_complete(handlers.listing.call),
        on_list_resources=_complete(handlers.resources.list),
        on_list_resource_templates=_complete(handlers.resources.templates),
        on_read_resource=_complete(handlers.resources.read),
        on_subscribe_resource=handlers.resources.subscribe,
        on_unsubscribe_resource=handlers.resources.unsubscribe,
        on_subscriptions_listen=listen_to,
        on_list_prompts=_complete(handlers.prompts.list),
        on_get_prompt=_complete(handlers.prompts.get),
        on_completion=_complete(handlers.prompts.complete),
    )
    server.extensions = {TASKS: {}}
    # As an argument of `Server` it is deprecated, because the newer revision has no such method.
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    server.add_request_handler("tasks/list", PaginatedRequestParams, handlers.tasks.list)
    server.add_request_handler("tasks/get", GetTaskRequestParams, handlers.tasks.get)
    server.add_request_handler("tasks/cancel", CancelTaskRequestParams, handlers.tasks.cancel)
    server.add_request_handler("tasks/update", UpdateTaskParams, handlers.tasks.update)
    server.add_request_handler("tasks/result", GetTaskRequestParams, handlers.tasks.result)
    server.middleware += [_with_named_fault, _with_bounded_token, _tasks_of_2025(handlers.listing)]
    return server


def options_of(server: Server[dict[str, Any]]) -> InitializationOptions:
    """The options told to a session at its begin."""
    told = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = server.create_initialization_options(told, extensions={})
    tasks = ServerTasksCapability.model_validate({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    return options.model_copy(update={"capabilities": options.capabilities.model_copy(update={"tasks": tasks, "extensions": None})})


def _complete(handler: Callable[[Ctx, P], Awaitable[JsonObject]]) -> Callable[[Ctx, P], Awaitable[Any]]:
    """Adds `resultType` to results. The SDK removes it for older revisions."""

    async def answer(ctx: Ctx, params: P) -> JsonObject:
        return {"resultType": "complete", **await handler(ctx, params)}

    return answer


async def _with_named_fault(ctx: Ctx, call_next: CallNext) -> HandlerResult:
    """Raises MCPError with the name of the invalid field, which the SDK does not tell."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # The SDK validates the message first, then its params.
        path = ".".join(str(part) for part in first["loc"])
        raise MCPError(INVALID_PARAMS, f"params.{path.removeprefix('params.')}: {first['msg']}") from error


async def _with_bounded_token(ctx: Ctx, call_next: CallNext) -> HandlerResult:
    """Raises MCPError for an invalid `progressToken`. The token is kept while its request goes on, and sent with all progress."""
    meta: object = (ctx.params or {}).get("_meta")
    token: object = cast("dict[str, object]", meta).get("progressToken") if isinstance(meta, dict) else None
    if token is not None and (not isinstance(token, str | int) or isinstance(token, bool) or len(json.dumps(token)) > LONGEST_ID):
        told = f"params._meta.progressToken: a text or an integer of at most {LONGEST_ID} characters when written in JSON is expected."
        raise MCPError(INVALID_PARAMS, told)
    return await call_next(ctx)


def _tasks_of_2025(listing: Listing) -> Any:
    """Answers a call with `task` by a task, because the SDK lets no handler give this answer."""

    async def answer(ctx: Ctx, call_next: CallNext) -> HandlerResult:
        wants_task = (ctx.params or {}).get("task") is not None
        if ctx.method != "tools/call" or ctx.protocol_version != LATEST_HANDSHAKE_VERSION or not wants_task:
            return await call_next(ctx)
        params = CallToolRequestParams.model_validate(ctx.params, by_name=False)
        return await listing.begin_task(ctx, params)

    return answer
