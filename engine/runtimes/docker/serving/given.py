"""Containers that a source names by id: build containers of its tool, and containers that the policy allows."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.engine import Document, Missing
from engine.runtimes.docker_engine.labels import Kind, Marks, Origin
from engine.runtimes.failures import StartFailed
from toolagent.contracts.calls import ErrorType
from toolagent_service.calls.container_names import is_container

_UP = ("running", "restarting")


@dataclass(frozen=True, slots=True)
class Given:
    """`endpoint` is empty if the container must be started first."""

    container: str
    endpoint: str
    pid: int


class GivenContainers:
    def __init__(self, parts: DockerParts) -> None:
        self._engine, self._ports, self._settings = parts.engine, parts.ports, parts.settings

    async def find(self, tool_id: str, container: str, port: int) -> Given:
        """Raises StartFailed, EngineFailure."""
        if not port:
            message = f"The docker source of {tool_id!r} names a container, but not the port of its server (`internal_port`)."
            raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"missing": "internal_port"})
        if not is_container(container):
            message = f"The docker source of {tool_id!r} names {container[:80]!a} as its container, which is no name or id of one."
            raise StartFailed(ErrorType.VALIDATION_ERROR, message, {"container_id": container[:80]})
        try:
            document = await self._engine.ask(lambda api: api.inspect_container(container))
        except Missing as error:
            message = f"The container {container!r} of the tool {tool_id!r} is gone: make it anew, and name the new one in the source."
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, message, {"container_id": container}) from error
        name = str(document["Name"]).removeprefix("/")
        if not self._may_have(tool_id, name, document["Config"].get("Labels") or {}):
            message = (
                f"The tool {tool_id!r} may not use the container {container!r}: it is not a build container of this tool, "
                "and this host's policy does not name it in `containers`."
            )
            raise StartFailed(ErrorType.SECURITY_ERROR, message, {"container_id": container})
        state: Document = document["State"]
        if state["Status"] not in _UP:
            return Given(str(document["Id"]), "", 0)
        if (endpoint := self._ports.address_of(name, port) or _endpoint(document["NetworkSettings"], port)) is None:
            message = f"The container {container!r} of the tool {tool_id!r} publishes no port {port} and has no network to reach it by."
            raise StartFailed(ErrorType.UNAVAILABLE, message, {"container_id": container, "port": port})
        return Given(str(document["Id"]), endpoint, int(state["Pid"]))

    def _may_have(self, tool_id: str, name: str, labels: dict[str, str]) -> bool:
        if (ours := self._settings.seals.container(labels)) is not None:
            origin, marks = ours
            return (origin.state, marks.kind, marks.tool) == (self._settings.owner.state, Kind.BUILD, tool_id)
        if Origin.read(labels) is not None and Marks.read(labels) is not None:
            return False  # another service's, or a forgery
        return any(fnmatchcase(name, pattern) for pattern in self._settings.policy.containers)


def _endpoint(network: Document, port: int) -> str | None:
    ports: dict[str, list[Document] | None] = network.get("Ports") or {}
    if published := ports.get(f"{port}/tcp"):
        return f"http://127.0.0.1:{published[0]['HostPort']}"
    networks: dict[str, Document] = network.get("Networks") or {}
    addresses = [str(one["IPAddress"]) for one in networks.values() if one.get("IPAddress")]
    return f"http://{addresses[0]}:{port}" if addresses else None
