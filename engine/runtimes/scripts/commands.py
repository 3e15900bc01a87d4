"""Turns one call of a script into the sandbox's terms: command, files, variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from engine.runtimes.environments.dependencies import Dependencies, Script
from engine.runtimes.environments.environments import Environment
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.box import Box, Mount
from engine.runtimes.sandbox.sandbox import run_name
from engine.runtimes.scripts.access import access_of
from toolagent.contracts.calls import Caller
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sandbox import Difference, SandboxGrant
from toolagent.contracts.sources import ScriptLanguage

_SHIMS = Path(__file__).with_name("shims")
_SHIM_FOLDER = Path("/run/script-entry")
_SHIM_OF = {
    ScriptLanguage.PYTHON: "python_entry.py",
    ScriptLanguage.NODEJS: "node_entry.mjs",
    ScriptLanguage.BUN: "node_entry.mjs",
}
_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    "PYTHONNOUSERSITE": "1",
    "BUN_RUNTIME_TRANSPILER_CACHE_PATH": "0",
    "DO_NOT_TRACK": "1",
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A script with its environment, ready to be executed."""

    script: Script
    dependencies: Dependencies
    environment: Environment


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """One execution. `own` names the tool's writable folder. `wall_s` is in seconds, from launch.

    An empty `call_id` is the start of a tool, which executes nothing.

    `files` are files of this call that the script may read; it may leave files in `output_dir`.
    """

    tool_id: str
    call_id: str
    own: str
    params: Mapping[str, JsonValue]
    wall_s: float
    context: SecurityContext
    version: str = ""
    asked: Mapping[str, JsonValue] | None = None
    """The parameters of the call, if the script is given only some of them."""
    schema: JsonSchema = field(default_factory=dict[str, JsonValue])
    """The schema of the call's parameters."""
    entry_point: str | None = None
    files: tuple[Path, ...] = ()
    output_dir: Path | None = None
    caller: Caller = field(default_factory=Caller)
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The variables of its source."""


def command_of(prepared: Prepared, call: ScriptCall, programs: Programs) -> tuple[str, ...]:
    """Arguments, never a text for a shell. Raises ScriptFailure if the interpreter is missing."""
    script = str(prepared.script.file)
    what = (script,) if call.entry_point is None else (str(_shim(prepared.environment.language).target), script, call.entry_point)
    return (*_interpreter(prepared.environment, programs)[0], *what)


def box_of(
    prepared: Prepared, call: ScriptCall, grant: SandboxGrant, programs: Programs, own: Path, host: Mapping[str, str]
) -> tuple[Box, tuple[Difference, ...]]:
    """`own` is the tool's writable folder, `host` holds the variables of this machine. Raises ScriptFailure, OSError."""
    environment, folder = prepared.environment, prepared.script.folder
    over = [Mount(environment.modules, folder / "node_modules")] if environment.modules else []
    access = access_of(prepared.script, grant, own, over)
    mounts = [*_interpreter(environment, programs)[1], *access.mounts]
    if call.entry_point is not None:
        mounts.append(_shim(environment.language))
    mounts += [Mount(file, file) for file in call.files]
    variables = {name: host[name] for name in grant.environment if name in host}
    variables |= {**_VARIABLES, **call.variables, "TOOL_AGENT_TOOL_ID": call.tool_id, "TOOL_AGENT_CALL_ID": call.call_id}
    if call.output_dir is not None and call.output_dir.is_dir():
        mounts.append(Mount(call.output_dir, call.output_dir, writable=True))
        variables["TOOL_AGENT_OUTPUT_DIR"] = str(call.output_dir)
    return Box(run_name(call.tool_id), folder, grant.limits, tuple(mounts), variables), access.differences


def _interpreter(environment: Environment, programs: Programs) -> tuple[tuple[str, ...], tuple[Mount, ...]]:
    """The beginning of the command, and the mounts that it needs."""
    match environment.language:
        case ScriptLanguage.PYTHON:
            return (str(environment.folder.python),), environment.mounts
        case ScriptLanguage.NODEJS:
            node = programs.require("Node.js", programs.node)
            return (str(node.file),), node.mounts
        case ScriptLanguage.BUN:
            bun = programs.require("Bun", programs.bun)
            return (str(bun.file), "--no-install"), bun.mounts


def _shim(language: ScriptLanguage) -> Mount:
    name = _SHIM_OF[language]
    return Mount(_SHIMS / name, _SHIM_FOLDER / name)
