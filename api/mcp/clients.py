"""The identity of an MCP client, and its declared capabilities."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import cast

from mcp import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, INVALID_PARAMS, LOG_LEVEL_META_KEY, InputResponseRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from api.forms import NO_CONTROLS
from api.json_object import JsonObject
from api.mcp.visit import Ctx, Visit
from toolagent.contracts.call_messages import Answer, Elicitation, Listener, LogLevel
from toolagent.contracts.calls import Caller
from toolagent.contracts.catalog import ToolEntry

TASKS = "io.modelcontextprotocol/tasks"
"""The extension of revision 2026-07-28 for long calls."""

IDEMPOTENCY_KEY = "toolagent/idempotency_key"
"""The key of a call's idempotency key in `_meta` of a request."""

CALLER_ID = "toolagent/caller_id"
"""The key of the caller's id in `_meta` of a request, as `caller.caller_id` of a call over HTTP."""

_USUAL_LEVEL = LogLevel.INFO
_LONGEST = 200
_ANSWERS: tuple[Answer, ...] = ("elicitation", "sampling", "roots")
_MODES: tuple[Elicitation, ...] = ("form", "url")


def is_modern(ctx: Ctx) -> bool:
    """Whether the request uses a revision without sessions."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def capabilities_of(ctx: Ctx) -> Mapping[str, JsonValue]:
    """The capabilities that the client declared, with its request or at the begin of its session."""
    if is_modern(ctx):
        told = (ctx.meta or {}).get(CLIENT_CAPABILITIES_META_KEY)
        return cast("JsonObject", told) if isinstance(told, dict) else {}
    declared = ctx.session.client_capabilities
    return declared.model_dump(mode="json", by_alias=True, exclude_none=True) if declared is not None else {}


def has_tasks(ctx: Ctx) -> bool:
    extensions = capabilities_of(ctx).get("extensions")
    return isinstance(extensions, dict) and TASKS in extensions


def caller_of(ctx: Ctx, visit: Visit) -> Caller:
    """The caller; its conversation is the session, if there is one. Raises MCPError for an invalid caller id."""
    client = ctx.session.client_params
    name = client.client_info.name.strip()[:_LONGEST] if client is not None else ""
    kind = "conversation_agent" if visit.session is not None else "direct"
    return Caller(caller_id=_said_caller(ctx) or name or None, caller_type=kind, conversation_id=visit.conversation_id)


def _said_caller(ctx: Ctx) -> str | None:
    """Raises MCPError."""
    match (ctx.meta or {}).get(CALLER_ID):
        case None:
            return None
        case str() as said if 0 < len(said) <= _LONGEST and re.match(NO_CONTROLS, said):
            return said
        case _:
            told = f"_meta[{CALLER_ID!r}]: a text of 1 to {_LONGEST} characters without control characters is expected."
            raise MCPError(INVALID_PARAMS, told)


def own_key(ctx: Ctx, visit: Visit, key: str) -> str:
    """The idempotency key of a call.

    Sessions have separate keys, unless they name their caller: `clientInfo.name` names a program, which many callers use.
    """
    if visit.session is None or _said_caller(ctx) is not None:
        return key
    return f"session-{hashlib.sha256(json.dumps([visit.session.session_id, key]).encode()).hexdigest()[:40]}"


def token_of(ctx: Ctx) -> str | int | None:
    """The client's token for progress; None if it wants none."""
    token = (ctx.meta or {}).get("progress_token")
    return token if isinstance(token, str | int) else None


def listener_of(ctx: Ctx, visit: Visit, entry: ToolEntry) -> Listener | None:
    """What the client hears and answers; None if it only waits. Not every kind of source logs and asks."""
    progress = token_of(ctx) is not None
    if not any(source.traits.asks for source in entry.sources):
        return Listener(progress=True) if progress else None
    told = capabilities_of(ctx)
    listener = Listener(progress=progress, log_level=_level(ctx, visit), answers=_answers(told), elicits=_elicits(told))
    return None if listener == Listener() else listener


def answering(ctx: Ctx) -> Listener | None:
    """The questions that the client answers outside of calls. Only the newer revision allows them, in its answers."""
    told = capabilities_of(ctx)
    return Listener(answers=answers, elicits=_elicits(told)) if is_modern(ctx) and (answers := _answers(told)) else None


def asked_again(asked: JsonObject, params: InputResponseRequestParams) -> JsonObject:
    """A request with the client's answers, and the state that the client keeps for the server."""
    again: JsonObject = {} if params.request_state is None else {"requestState": params.request_state}
    return {**asked, **again, **({"inputResponses": responses_of(params)} if params.input_responses else {})}


def responses_of(params: InputResponseRequestParams) -> JsonObject:
    """The answers in a request, by the keys of their questions."""
    given = params.input_responses or {}
    return {key: answer.model_dump(mode="json", by_alias=True, exclude_none=True) for key, answer in given.items()}


def _answers(told: Mapping[str, JsonValue]) -> tuple[Answer, ...]:
    return tuple(answer for answer in _ANSWERS if answer in told)


def _elicits(told: Mapping[str, JsonValue]) -> tuple[Elicitation, ...]:
    """The modes of elicitation. A client that names none supports forms, as in revisions before there were modes."""
    declared = told.get("elicitation")
    modes: tuple[Elicitation, ...] = tuple(mode for mode in _MODES if isinstance(declared, dict) and declared.get(mode) is not None)
    return modes or ("form",)


def _level(ctx: Ctx, visit: Visit) -> LogLevel | None:
    if is_modern(ctx):
        asked = (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
        return LogLevel(asked) if asked in {level.value for level in LogLevel} else None
    if visit.session is None:
        return None
    return LogLevel(visit.session.log_level) if visit.session.log_level else _USUAL_LEVEL
