"""Stops a server that was rented from RunComfy."""

from functools import partial
from typing import Annotated

from pydantic import Field

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.service import OneServer, RunComfy, manifest_of
from engine.runtimes.builtin.tool import BuiltinTool, ToolContext, ToolOutput, TypedTool
from toolagent.contracts.manifest import ToolExample


class Arguments(OneServer):
    pass


class Result(ToolOutput):
    server_id: str
    stopped: Annotated[bool, Field(description="It costs nothing any more: RunComfy confirms it.")]
    already_gone: Annotated[bool, Field(description="It was not there any more.")]
    status: Annotated[str, Field(description="RunComfy's word for its state.")]


_MANIFEST = manifest_of(
    Arguments,
    Result,
    tool_id="runcomfy_stop_env",
    name="停止 ComfyUI 环境 Stop a ComfyUI server",
    description=(
        "停止租用的 ComfyUI 服务器并停止计费;已经不存在也算成功。"
        "Stops a rented ComfyUI server, which costs nothing from then on. One that is gone already counts as stopped."
    ),
    tag="stop",
    example=ToolExample(description="The server of a launch", input={"server_id": "d26d4f31-8696-43ad-ba62-b4f8c268b79a"}),
    timeout_s=120,
    bucket="http",  # it must not wait for launches and runs
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, partial(run, RunComfy(options)))


async def run(service: RunComfy, arguments: Arguments, _context: ToolContext) -> Result:
    """Raises CallFailed if the provider does not confirm the stop."""
    async with service.cloud() as cloud:
        last = await cloud.stop(arguments.server)
    status = "gone" if last is None else last.current_status or "Deleting"
    return Result(server_id=arguments.server, stopped=True, already_gone=last is None, status=status)
