"""Executes a script below the script root: ExternalScriptExecutionService.executeScript.

The failure of a script is a result, not a failure of the call. The language is a parameter, or part of the id of the called tool
(`core:execute-bun-script`), or follows from the ending of the script's name.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, JsonValue

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool, schema_of
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.failures import CallFailed
from engine.runtimes.scripts.commands import ScriptCall
from engine.runtimes.scripts.service import ScriptService
from engine.runtimes.scripts.verdicts import ScriptReply
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import FileAccess, PermissionClass, SecurityContext, SideEffectScope, ToolExample, ToolManifest
from toolagent.contracts.sources import ScriptLanguage
from toolagent.core.texts import shortened

_ENDINGS = {
    ".py": ScriptLanguage.PYTHON,
    ".js": ScriptLanguage.NODEJS,
    ".mjs": ScriptLanguage.NODEJS,
    ".cjs": ScriptLanguage.NODEJS,
    ".ts": ScriptLanguage.BUN,
}
_SHOWN = 2_000
_MARGIN_S = 1.0
"""The script's time-out ends earlier than the call's, so that the result can report it."""


class Arguments(ToolArguments):
    scriptPath: Annotated[str, Field(description="Path of the script, relative to the script root: `examples/echo.py`.")]  # noqa: N815 - specified
    language: Annotated[
        ScriptLanguage | None, Field(strict=False, description="Unset: as the tool's id says, or else the ending of the script's name.")
    ] = None
    inputData: Annotated[dict[str, JsonValue], Field(description="Given to the script on stdin, as JSON.")] = {}  # noqa: N815
    timeoutMs: Annotated[  # noqa: N815
        int | None, Field(ge=100, le=86_400_000, description="Milliseconds the script may take, a day at most; unset: the policy's.")
    ] = None


class ExecutionError(ToolOutput):
    type: Annotated[str, Field(description="`TimeoutError`, `ScriptError`, `DependencyError`, `SecurityError` …")]
    message: str
    details: Annotated[str | None, Field(description="What the script wrote on stderr, or else what is known, as JSON.")] = None


class Result(ToolOutput):
    """A ScriptExecutionResult. Fields that are None are left out."""

    leaves_out_none = True

    success: bool
    outputData: Annotated[dict[str, JsonValue] | None, Field(description="What the script wrote on stdout.")] = None  # noqa: N815
    error: ExecutionError | None = None
    logs: Annotated[tuple[str, ...], Field(description="Lines of stderr, and of stdout when it failed; cut with a note.")] = ()


_MANIFEST = ToolManifest(
    tool_id="execute_script",
    name="Execute Script",
    description=(
        "Executes a Python, Node.js or Bun script in the sandbox: its input as JSON on stdin, one JSON object on its stdout. What it "
        "depends on is named beside it: `requirements.txt`, `pyproject.toml` or inline metadata (PEP 723), `package.json`. "
        "在沙箱中运行 Python、Node.js 或 Bun 脚本。"
    ),
    tags=("scripting", "execution", "run", "运行", "脚本"),
    category="scripting",
    input_schema=schema_of(Arguments),
    output_schema=schema_of(Result),
    permission_class=PermissionClass.EXTERNAL,
    side_effect_scope=SideEffectScope.LOCAL_STATE,
    security_context=SecurityContext.model_validate(
        {"file_access": FileAccess(allow_read=("self", "./*", ".cache/**"), allow_write=(".cache/**",))}
    ),
    examples=(
        ToolExample(
            description="Execute a simple Python script that echoes input.",
            input={"scriptPath": "examples/echo.py", "inputData": {"message": "hello from agent"}},
            expected_output={"success": True, "outputData": {"received_message": "hello from agent"}},
        ),
        ToolExample(
            description="Execute a script that is expected to fail due to a timeout.",
            input={"scriptPath": "examples/long_running.py", "inputData": {}, "timeoutMs": 100},
            expected_output={"success": False, "error": {"type": "TimeoutError", "message": "Script execution timed out."}},
        ),
    ),
    # The limit of a script is its parameter, which a shorter time-out here would cut off.
    timeout_s=3600,
)


def tool(_options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, run, starts_processes=True)


async def run(arguments: Arguments, context: ToolContext) -> Result:
    """Raises CallFailed (`unavailable`) if there is no host to execute the script; all other failures are results."""
    if context.scripts is None:
        raise CallFailed(ErrorType.UNAVAILABLE, "Only hosts execute scripts, and this process is not a host.")
    try:
        reply = await _execute(arguments, context, context.scripts)
        return Result(success=True, outputData=_object(reply), logs=reply.logs)
    except ScriptFailure as failure:
        details = failure.told or (json.dumps(failure.facts, ensure_ascii=False) if failure.facts else None)
        error = ExecutionError(type=failure.kind.value, message=failure.message, details=details)
        return Result(success=False, error=error, logs=failure.logs)


async def _execute(arguments: Arguments, context: ToolContext, scripts: ScriptService) -> ScriptReply:
    called = context.tool
    most_s = max(context.timeout_s - _MARGIN_S, context.timeout_s / 2)
    call = ScriptCall(
        tool_id=called.tool_id,
        version=called.version,
        call_id=context.call_id,
        own=called.tool_id,
        params=arguments.inputData,
        asked=context.asked,
        schema=called.input_schema,
        wall_s=most_s,
        context=called.security_context,
        caller=context.caller,
    )
    try:
        language = _language(arguments, called)
        prepared = await scripts.prepare(scripts.root, arguments.scriptPath, language, called.tool_id, context.progress)
    except ScriptFailure as failure:
        scripts.refuse(call, failure)
        raise
    # Each script has a writable folder of its own.
    own = hashlib.sha256(prepared.script.path.encode()).hexdigest()[:16]
    wall_s = arguments.timeoutMs / 1000 if arguments.timeoutMs is not None else scripts.usual_wall_s(call)
    bounded = replace(call, own=f"{called.tool_id}/{own}", wall_s=most_s if wall_s is None else min(wall_s, most_s))
    return await scripts.execute(prepared, bounded, context.progress)


def _language(arguments: Arguments, called: ToolManifest) -> ScriptLanguage:
    """Raises ScriptFailure if the language is unknown."""
    if arguments.language is not None:
        return arguments.language
    named = [language for language in ScriptLanguage if f"-{language.value}-" in called.tool_id]
    told = named[0] if named else _ENDINGS.get(PurePosixPath(arguments.scriptPath).suffix.lower())
    if told is None:
        message = "The script's name does not say its language. Give `language`: python, nodejs or bun."
        raise ScriptFailure(ScriptErrorKind.INPUT, message, {"parameter": "language"})
    return told


def _object(reply: ScriptReply) -> dict[str, JsonValue]:
    if isinstance(reply.output, dict):
        return reply.output
    message = "The script wrote JSON on stdout that is not an object, which `outputData` must be."
    raise ScriptFailure(ScriptErrorKind.OUTPUT, message, {"stdout": shortened(json.dumps(reply.output), _SHOWN)}, logs=reply.logs, ran=True)
