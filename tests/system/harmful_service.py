"""`python -m tests.system.harmful_service up`: the service with two more built-in tools, which harm its process."""

import os
import signal
import sys
import time
from collections.abc import Mapping

from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool, schema_of
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolManifest
from workers import parts
from workers.__main__ import main


class Blocking(ToolArguments):
    seconds: float


class Killing(ToolArguments):
    pass


class Done(ToolOutput):
    done: bool = True


async def block(arguments: Blocking, _context: ToolContext) -> Done:
    """Blocks the thread of the event loop."""
    time.sleep(arguments.seconds)  # noqa: ASYNC251 - this is what it is for
    return Done()


async def kill(_arguments: Killing, _context: ToolContext) -> Done:
    os.kill(os.getpid(), signal.SIGKILL)
    return Done()


def _manifest(tool_id: str, arguments: type[ToolArguments]) -> ToolManifest:
    return ToolManifest(
        tool_id=tool_id,
        name=tool_id,
        input_schema=schema_of(arguments),
        output_schema=schema_of(Done),
        permission_class=PermissionClass.READ,
        side_effect_scope=SideEffectScope.NONE,
        timeout_s=2,
    )


def harmful_tools(options: BuiltinOptions) -> Mapping[str, BuiltinTool]:
    harmful: tuple[BuiltinTool, ...] = (
        TypedTool(_manifest("blocks", Blocking), Blocking, block),
        TypedTool(_manifest("kills", Killing), Killing, kill),
    )
    return {**builtin_tools(options), **{tool.manifest.tool_id: tool for tool in harmful}}


if __name__ == "__main__":
    parts.builtin_tools = harmful_tools
    sys.exit(main(sys.argv[1:]))
