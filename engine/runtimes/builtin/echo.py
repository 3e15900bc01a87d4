"""Returns its argument."""

from pydantic import JsonValue

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool, schema_of
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest


class Arguments(ToolArguments):
    message: JsonValue


class Result(ToolOutput):
    message: JsonValue


_MANIFEST = ToolManifest(
    tool_id="echo",
    name="Echo",
    description="Returns the message it is given, unchanged: to see that calls arrive.",
    tags=("test",),
    input_schema=schema_of(Arguments),
    output_schema=schema_of(Result),
    permission_class=PermissionClass.READ,
    side_effect_scope=SideEffectScope.NONE,
    examples=(
        ToolExample(description="A text", input={"message": "hello"}, expected_output={"message": "hello"}),
        ToolExample(description="Any JSON", input={"message": {"n": [1, None]}}, expected_output={"message": {"n": [1, None]}}),
    ),
    timeout_s=2,
)


def tool(_options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, run)


async def run(arguments: Arguments, _context: ToolContext) -> Result:
    return Result(message=arguments.message)
