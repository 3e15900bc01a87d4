"""Checks whether a runtime of this service can run a source of the tool."""

from engine.calls.checks.asked import Asked, Check, Sources
from engine.calls.endings import Refused
from toolagent.contracts.calls import ErrorType


async def _check(asked: Asked, sources: Sources) -> Asked:
    types = [source.type for source in asked.found.sources]
    if any(name in sources.limits.executable for name in types):
        return asked
    has = f"sources of type {', '.join(types)}, which nothing here can run" if types else "no source to run it from"
    raise Refused(ErrorType.EXECUTOR_NOT_FOUND, f"Tool {asked.manifest.tool_id!r} has {has}.", {"source_types": [*types]})


CHECK = Check("executor", "the tool's sources, the runtimes of this host", _check, (ErrorType.EXECUTOR_NOT_FOUND,))
