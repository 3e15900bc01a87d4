"""The network of an image build: an idle container whose loopback has our proxy and leads nowhere else."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.network.proxy_rules import Asked
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.carried import INSIDE, Carried
from engine.runtimes.docker_engine.empty_image import empty_image
from engine.runtimes.docker_engine.engine import Document, Engine, EngineFailure, EngineUnavailable, Missing
from engine.runtimes.docker_engine.labels import Kind
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.docker_engine.serving_containers import created, entered, entry, hardened, removed
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.sandbox.egress import Opening, SandboxNetwork

_PORT = 1
"""No program serves this port. The socket that leads to it appears when the proxy is up."""
_UP_S = 15.0
_LOOK_S = 0.02
_ARGUMENTS = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
"""Build arguments that every Dockerfile has without naming them, and that leave no trace in the image."""


@dataclass(frozen=True, slots=True)
class Gate:
    """`network` is in the engine's form; `arguments` tell the build's programs where the proxy is."""

    engine: Engine
    network: str = "none"
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])

    async def end(self) -> None:
        """Remove all containers in this network. Raises EngineFailure."""
        for one in await self.engine.ask(lambda api: api.containers(all=True, filters={})):
            if one.get("HostConfig", {}).get("NetworkMode") == self.network != "none":
                with contextlib.suppress(Missing):
                    await removed(self.engine, str(one["Id"]))


@asynccontextmanager
async def opened_gate(
    parts: DockerParts, tool_id: str, hosts: Sequence[str], private_hosts: Sequence[str], tell: Callable[[Asked], None]
) -> AsyncGenerator[Gate]:
    """A gate to these hosts only; `tell` is called at each request, allowed or refused. Raises EngineFailure, OSError."""
    name = f"tool-agent-gate-{secrets.token_hex(6)}"
    opening = Opening(hosts=hosts, private_hosts=private_hosts, port=_PORT, tell=tell, python=INSIDE)
    carried = await Carried.put_together(parts.settings.state / "carried")
    async with parts.egress.open(name, opening) as way:
        image = await parts.engine.ask(lambda api: empty_image(parts.engine, api, parts.settings.image_labels))
        config = _config(parts.settings, await parts.engine.processors(), image, name, way, carried)
        config["Labels"] = parts.settings.labels(parts.settings.marks(Kind.GATE, name, tool_id))
        container = await created(parts.engine, config, name)
        try:
            await parts.engine.ask(lambda api: api.start(container))
            await _until_up(Path(way.endpoint.removeprefix("unix:")))
            given = {variable: way.environment[variable] for variable in _ARGUMENTS if variable in way.environment}
            gate = Gate(parts.engine, f"container:{container}", given)
            try:
                yield gate
            finally:
                with contextlib.suppress(EngineFailure):
                    await asyncio.shield(gate.end())
        finally:
            with contextlib.suppress(EngineFailure):
                await removed(parts.engine, container)


def _config(settings: DockerSettings, processors: int, image: str, name: str, way: SandboxNetwork, carried: Carried) -> Document:
    limits = ContainerLimits.within(settings.policy.defaults, settings.policy.ceilings, processors)
    return {
        "Image": image,
        "Entrypoint": [*entry(way, carried), *carried.argv("idle")],
        "Cmd": [],
        "User": settings.user,
        "Hostname": name,
        "HostConfig": {**hardened(limits), "ReadonlyRootfs": True, "Mounts": entered(way, carried)},
    }


async def _until_up(socket: Path) -> None:
    try:
        async with asyncio.timeout(_UP_S):
            while not await asyncio.to_thread(socket.exists):  # noqa: ASYNC110 - the container makes it
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise EngineUnavailable(f"The network of the build was not up within {_UP_S:g} s.") from None
