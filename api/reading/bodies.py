"""Request bodies, which refuse unknown fields.

Answers are in `toolagent.contracts.http`.
"""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.json_schema import SkipJsonSchema

from api.forms import NO_CONTROLS, SOMETHING
from api.json_object import JsonObject
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.calls import Caller, CallMode, ToolCall
from toolagent.contracts.contract import Contract
from toolagent.contracts.external_tables import TableSource
from toolagent.contracts.http import SearchDetail
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.knowhub import SyncRequest
from toolagent.contracts.mcp_oauth import McpOAuth
from toolagent.contracts.mcp_servers import McpServerName, McpServerSpec

LONGEST_MESSAGE = 8_000
"""In characters. With its context, a message may become the description of a task."""

STRICT = ConfigDict(extra="forbid", strict=True)
# Control characters are of no use in a name, and databases refuse NUL.
_Plain = Field(pattern=NO_CONTROLS)
_PARAMS: JsonValue = {"text": "春天来了。花开了,燕子也从南方飞回来了。", "max_length": 20}


def strict(*examples: JsonValue) -> ConfigDict:
    return STRICT | ConfigDict(json_schema_extra={"examples": [*examples]})


class CallerBody(Caller):
    """The caller, and the conversation of the call."""

    model_config = STRICT

    caller_id: Annotated[str | None, Field(max_length=200), _Plain] = None
    caller_type: Annotated[str, Field(max_length=64, description="conversation_agent, workflow_node, direct or unknown"), _Plain] = (
        "unknown"
    )
    conversation_id: Annotated[str | None, Field(max_length=200), _Plain] = None


def _in_small_letters(given: object) -> object:
    return given.lower() if isinstance(given, str) else given


AskedTool = Annotated[ToolId, BeforeValidator(_in_small_letters)]
"""A tool's id in any case: other systems write names with capitals, such as `LoadImage`, and a group may answer for them."""


class RunToolBody(ToolCall):
    """A call. The header `Idempotency-Key` may stand for `idempotency_key`."""

    model_config = strict(
        {"tool_id": "text_summarizer_api", "params": _PARAMS},
        {"tool_id": "echo", "params": {"message": "hello"}, "mode": "async", "idempotency_key": "order-17", "timeout_s": 10},
    )

    tool_id: AskedTool
    version: Annotated[
        str | None,
        Field(max_length=64, description="An exact version or a range (`^1.2`, `~1.2.3`, `>=1.2 <2`); unset: the active one."),
        _Plain,
    ] = None
    mode: Annotated[CallMode, Field(strict=False)] = CallMode.SYNC
    caller: CallerBody = CallerBody()  # pyright: ignore[reportIncompatibleVariableOverride] - frozen, so narrowing is sound
    # Over HTTP, a caller only waits.
    listens: SkipJsonSchema[None] = None  # pyright: ignore[reportIncompatibleVariableOverride] - as above


class SelectToolBody(Contract):
    """A call."""

    model_config = strict({"tool_id": "text_summarizer_api", "params": _PARAMS})

    tool_id: AskedTool
    params: JsonObject = {}
    stream: bool = False


class AgentChatBody(Contract):
    """A message of an agent in plain words. Of `context`, the texts `task` and `requirements` are read."""

    model_config = strict(
        {"message": "我需要处理图片的工具", "context": {"task": "批量压缩图片"}},
        {"message": "How do I use the ComfyUI nodes LoadImage and SaveImage?"},
        {"message": "帮我创建一个文本摘要工具", "context": {"requirements": "支持中英文,最大长度 500 字"}},
    )

    message: Annotated[str, Field(max_length=LONGEST_MESSAGE, pattern=SOMETHING)]
    context: JsonObject = {}
    caller: CallerBody = CallerBody()


class SearchToolsBody(Contract):
    """A need in `keyword`, and filters. An empty text is no filter, but an empty namespace selects ids without one."""

    model_config = strict({"keyword": "图片", "category": "cv"}, {"keyword": "what song is this", "limit": 5, "detail": "compact"})

    keyword: Annotated[
        str | None, Field(max_length=500, description="A need, in words of Chinese or English, or a tool's id or name; unset: all tools.")
    ] = None
    category: Annotated[str | None, Field(max_length=64), _Plain] = None
    namespace: Annotated[str | None, Field(max_length=128, description="What stands before the colon of an id."), _Plain] = None
    tag: Annotated[str | None, Field(max_length=64, description="One that the tool has."), _Plain] = None
    backend_runtime: Annotated[BackendRuntime | None, Field(strict=False)] = None
    group: Annotated[str | None, Field(max_length=128, description="The id of one that the tool belongs to."), _Plain] = None
    limit: Annotated[int | None, Field(ge=1, le=1000, description="The most to be answered; unset: all that were found.")] = None
    detail: Annotated[
        SearchDetail, Field(strict=False, description="`compact`: what a model needs for a choice, without schemas and state.")
    ] = SearchDetail.FULL


class RegisterTableBody(Contract):
    """A table of tools on another server."""

    model_config = strict({"source": "agent_system_x", "tools_url": "https://agent-x.example/api/tools", "api_key": "sk-0123456789"})

    source: TableSource
    tools_url: Annotated[str, Field(min_length=1, max_length=2_000, description="Where its list is, by http:// or https://."), _Plain]
    api_key: Annotated[
        str | None, Field(min_length=1, max_length=4_000, description="Sent as a bearer token to the table's own server."), _Plain
    ] = None


class McpOAuthBody(McpOAuth):
    """A client that the authorization server of an MCP server knows."""

    model_config = STRICT

    client_secret: Annotated[
        str | None,
        Field(min_length=1, max_length=8_000, description="That of the client, which is kept as other keys are; null: it has none."),
    ] = None


class RegisterMcpServerBody(McpServerSpec):
    """An MCP server, in the form of clients' files: `url`, or `command` with `args`."""

    model_config = strict(
        {"name": "time", "command": "uvx", "args": ["mcp-server-time"]},
        {"name": "far", "url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer …"}, "prefix": ""},
    )

    name: McpServerName
    oauth: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride] - frozen, so narrowing is sound
        McpOAuthBody | None,
        Field(description="The client that logs in at a `url`; null: the service registers itself where a login is wanted."),
    ] = None

    @property
    def spec(self) -> McpServerSpec:
        return McpServerSpec.model_validate(self.model_dump(exclude={"name"}))


class SyncKnowHubBody(SyncRequest):
    """A synchronisation; with `dry_run`, only its plan."""

    model_config = strict({"dry_run": True})
