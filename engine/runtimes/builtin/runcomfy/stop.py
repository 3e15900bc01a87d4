"""Stops a server that was rented from RunComfy."""

from typing import Annotated

from pydantic import Field

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.service import CATEGORY, GROUP, TAGS, OneServer, RunComfy
from engine.runtimes.builtin.tool import BuiltinTool, ToolContext, ToolOutput, TypedTool, schema_of
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest


class Arguments(OneServer):
    pass


class Result(ToolOutput):
    server_id: str
    stopped: Annotated[bool, Field(description="It costs nothing any more: RunComfy confirms it.")]
    already_gone: Annotated[bool, Field(description="It was not there any more.")]
    status: Annotated[str, Field(description="RunComfy's word for its state.")]


_MANIFEST = ToolManifest(
    tool_id="runcomfy_stop_env",
    name="停止 ComfyUI 环境 Stop a ComfyUI server",
    description=(
        "停止租用的 ComfyUI 服务器并停止计费;已经不存在也算成功。"
        "Stops a rented ComfyUI server, which costs nothing from then on. One that is gone already counts as stopped."
    ),
    category=CATEGORY,
    backend_runtime=BackendRuntime.REMOTE,
    group_ids=(GROUP,),
    tags=(*TAGS, "stop"),
    input_schema=schema_of(Arguments),
    output_schema=schema_of(Result),
    permission_class=PermissionClass.EXTERNAL,
    side_effect_scope=SideEffectScope.NETWORK,
    idempotent=True,
    examples=(ToolExample(description="The server of a launch", input={"server_id": "d26d4f31-8696-43ad-ba62-b4f8c268b79a"}),),
    timeout_s=120,
    bucket="http",  # it must not wait for launches and runs
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, Stop(RunComfy(options)).run)


class Stop:
    def __init__(self, service: RunComfy) -> None:
        self._service = service

    async def run(self, arguments: Arguments, _context: ToolContext) -> Result:
        """Raises CallFailed when the provider does not confirm it."""
        async with self._service.cloud() as cloud:
            last = await cloud.stop(arguments.server)
        status = "gone" if last is None else last.current_status or "Deleting"
        return Result(server_id=arguments.server, stopped=True, already_gone=last is None, status=status)
