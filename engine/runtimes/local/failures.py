"""What is said when a local tool does not come up, or ends."""

from engine.runtimes.failures import StartFailed
from engine.runtimes.http.readiness import Unhealthy
from engine.runtimes.process.box import UNCOUNTED
from engine.runtimes.process.processes import Process, exit_text
from toolagent.contracts.calls import ErrorType

_TOLD_LINES = 20


def came_to(process: Process) -> str:
    """Which of its limits it came to, or that it never ran, as a half sentence."""
    ending = process.ending
    said = {
        "its sandbox could not be set up": not ending.was_set_up,
        "out of memory": ending.out_of_memory,
        f"it made {UNCOUNTED}": ending.disk_hidden,
        "its disk was full": ending.disk_full and not ending.disk_hidden,
        "it could start no more processes": ending.processes_refused,
    }
    told = [text for text, is_so in said.items() if is_so]
    return f" ({', '.join(told)})" if told else ""


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
