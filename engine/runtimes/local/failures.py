"""Failures of local tools that do not start."""

from engine.runtimes.failures import StartFailed
from engine.runtimes.http.readiness import Unhealthy
from engine.runtimes.process.processes import Process, came_to, exit_text
from toolagent.contracts.calls import ErrorType

_TOLD_LINES = 20


async def exited(process: Process, tool_id: str) -> StartFailed:
    code = await process.wait()
    return StartFailed(
        ErrorType.UNAVAILABLE,
        f"The tool {tool_id!r} {exit_text(code)} while it was starting{came_to(process)}.",
        {
            "exit_code": code,
            "stderr": "\n".join(process.stderr.last_lines(_TOLD_LINES)),
            **({} if process.ending.was_set_up else {"missing": "sandbox"}),
        },
    )


def unhealthy(process: Process, tool_id: str, path: str, outcome: Unhealthy) -> StartFailed:
    return StartFailed(
        ErrorType.UNAVAILABLE,
        f"The tool {tool_id!r} did not become healthy: {path} did not answer 200 within {outcome.waited_s:g} s ({outcome.last}).",
        {
            "health_path": path,
            "waited_s": outcome.waited_s,
            "last_answer": outcome.last,
            "stderr": "\n".join(process.stderr.last_lines(_TOLD_LINES)),
        },
    )
