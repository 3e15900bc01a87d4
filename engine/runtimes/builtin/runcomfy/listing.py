"""Lists the servers that an account rents from RunComfy."""

from typing import Annotated

from pydantic import Field

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.cloud import Server
from engine.runtimes.builtin.runcomfy.service import CATEGORY, GROUP, TAGS, RunComfy
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool, schema_of
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest


class Arguments(ToolArguments):
    pass


class Listed(ToolOutput):
    server_id: Annotated[str, Field(description="For runcomfy_workflow_executor and runcomfy_stop_env.")]
    status: str
    server_type: str
    started_at: Annotated[str | None, Field(description="When it became ready (ISO 8601).")] = None
    stopping_at: Annotated[str | None, Field(description="When RunComfy ends it by itself.")] = None


class Result(ToolOutput):
    servers: Annotated[tuple[Listed, ...], Field(description="Those that cost money, including servers launched by others.")]


_MANIFEST = ToolManifest(
    tool_id="runcomfy_list_envs",
    name="列出 ComfyUI 环境 List ComfyUI servers",
    description=(
        "列出账户租用的 ComfyUI 服务器。Lists the account's ComfyUI servers, including servers launched by others. It changes nothing."
    ),
    category=CATEGORY,
    backend_runtime=BackendRuntime.REMOTE,
    group_ids=(GROUP,),
    tags=(*TAGS, "list"),
    input_schema=schema_of(Arguments),
    output_schema=schema_of(Result),
    permission_class=PermissionClass.READ,
    side_effect_scope=SideEffectScope.NONE,
    idempotent=True,
    examples=(ToolExample(description="All of them", input={}),),
    timeout_s=60,
    bucket="http",  # it must not wait for launches and runs
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, Listing(RunComfy(options)).run)


class Listing:
    def __init__(self, service: RunComfy) -> None:
        self._service = service

    async def run(self, _arguments: Arguments, _context: ToolContext) -> Result:
        """Raises CallFailed."""
        async with self._service.cloud() as cloud:
            return Result(servers=tuple(_listed(one) for one in await cloud.listed() if not one.is_ending))


def _listed(server: Server) -> Listed:
    return Listed(
        server_id=server.server_id,
        status=server.current_status,
        server_type=server.server_type,
        started_at=server.service_ready_at,
        stopping_at=server.estimated_stopping_at,
    )
