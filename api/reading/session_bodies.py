"""Bodies of requests about sessions of groups."""

from typing import Annotated

from pydantic import Field, JsonValue

from api.json_object import JsonObject
from api.reading.bodies import CallerBody, strict
from toolagent.contracts.calls import IdempotencyKey
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.sessions import LeaseSeconds

_PARAMS: JsonValue = {"url": "https://example.com/"}


class OpenSessionBody(Contract):
    """The params of the launch. The header `Idempotency-Key` makes a repeated request the same session."""

    model_config = strict({"params": {}})

    params: JsonObject = {}
    caller: CallerBody = CallerBody()
    lease_s: Annotated[
        LeaseSeconds | None, Field(description="Stop it when it is neither used nor renewed for so many seconds; at most a day.")
    ] = None


class SessionRunBody(Contract):
    """A call in a session. The session adds the parameters that it binds, such as the id of the launched server."""

    model_config = strict({"params": _PARAMS})

    tool_id: ToolId | None = None
    """May be left out where only one tool of the group runs."""
    params: JsonObject = {}
    key: IdempotencyKey | None = None
    """The same key again is the same call."""
    timeout_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
