"""Lists the servers that an account rents from RunComfy."""

from functools import partial
from typing import Annotated

from pydantic import Field

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.service import RunComfy, manifest_of
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool
from toolagent.contracts.manifest import ToolExample


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


_MANIFEST = manifest_of(
    Arguments,
    Result,
    tool_id="runcomfy_list_envs",
    name="列出 ComfyUI 环境 List ComfyUI servers",
    description=(
        "列出账户租用的 ComfyUI 服务器。Lists the account's ComfyUI servers, including servers launched by others. It changes nothing."
    ),
    tag="list",
    only_reads=True,
    example=ToolExample(description="All of them", input={}),
    timeout_s=60,
    bucket="http",  # it must not wait for launches and runs
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, partial(run, RunComfy(options)))


async def run(service: RunComfy, _arguments: Arguments, _context: ToolContext) -> Result:
    """Raises CallFailed."""
    async with service.cloud() as cloud:
        servers = [
            Listed(
                server_id=server.server_id,
                status=server.current_status,
                server_type=server.server_type,
                started_at=server.service_ready_at,
                stopping_at=server.estimated_stopping_at,
            )
            for server in await cloud.listed()
            if not server.is_ending
        ]
    return Result(servers=tuple(servers))
