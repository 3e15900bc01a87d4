"""Lists the runtimes of tools."""

from collections import Counter

from pydantic import JsonValue

from activities.agent_tool import AgentTool, Arguments, Used
from engine.chats.desk import Desk
from toolagent.contracts.backend_runtimes import BackendRuntime

_SAID = {
    BackendRuntime.LOCAL: "a process on a host of this service, in an environment of its own",
    BackendRuntime.DOCKER: "a container",
    BackendRuntime.REMOTE: "an API of another provider, or a service in a cloud",
}


class ListBackendRuntimes(Arguments):
    """It takes none."""


async def list_backend_runtimes(_arguments: ListBackendRuntimes, desk: Desk) -> Used:
    counts = Counter(entry.manifest.backend_runtime for entry in await desk.tables.registry.list_entries())
    shown: list[JsonValue] = [{"backend_runtime": one.value, "description": said, "tool_count": counts[one]} for one, said in _SAID.items()]
    return Used({"backend_runtimes": shown})


LIST_BACKEND_RUNTIMES = AgentTool(
    "list_backend_runtimes",
    "List where tools run (local, docker, remote) and how many tools run there.",
    ListBackendRuntimes,
    list_backend_runtimes,
)
