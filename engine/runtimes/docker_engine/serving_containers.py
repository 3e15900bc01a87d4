"""Containers that serve a tool: no network, nothing to write to but memory, reached through a unix socket."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.runtimes.docker_engine.binds import bind
from engine.runtimes.docker_engine.carried import INSIDE, Carried
from engine.runtimes.docker_engine.engine import Document, Engine, EngineFailure, EngineUnavailable
from engine.runtimes.docker_engine.image import Image
from engine.runtimes.docker_engine.labels import IMAGE, SEAL, Marks
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.sandbox.egress import SandboxNetwork
from engine.runtimes.variables import GIVEN
from toolagent_service.contracts.containers import ContainerInfo

TMP = "/tmp"  # noqa: S108 - the container's own
_LOG = {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "2"}}


@dataclass(frozen=True, slots=True)
class Shape:
    """One container's own properties. `port` is the server's, inside; `user` is in the engine's form.

    `told` is its TOOL_AGENT_TOOL_ID; `place` names its folders on this host; `calls` holds the files of its calls, if it sees them.
    """

    labels: Mapping[str, str]
    marks: Marks
    image: Image
    command: tuple[str, ...]
    environment: Mapping[str, str]
    limits: ContainerLimits
    port: int
    user: str
    told: str
    place: str
    calls: Path | None
    mounts: tuple[Document, ...] = ()
    given: Path | None = None
    """The file with the secret variables."""


def hardened(limits: ContainerLimits) -> Document:
    """The settings that every container of ours has."""
    return {
        **limits.host_config,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "NetworkMode": "none",
        "RestartPolicy": {"Name": "no"},
        "LogConfig": _LOG,
    }


def container_config(shape: Shape, way: SandboxNetwork, carried: Carried) -> Document:
    """The engine's description of a serving container."""
    host = {
        **hardened(shape.limits),
        "ReadonlyRootfs": True,
        "Tmpfs": shape.limits.scratch(TMP, f"/var{TMP}"),
        "Mounts": [*entered(way, carried), *([bind(shape.given, GIVEN)] if shape.given else ()), *shape.mounts],
    }
    command = carried.argv("given", GIVEN, *shape.command) if shape.given else shape.command
    told = {"HOME": TMP, "LANG": "C.UTF-8", **shape.image.environment, "PORT": str(shape.port), **shape.environment, **way.environment}
    return {
        "Image": shape.image.image_id,
        "Entrypoint": [*entry(way, carried), *command],
        "Cmd": [],
        "User": shape.user,
        "Env": [f"{name}={value}" for name, value in {**told, "TOOL_AGENT_TOOL_ID": shape.told}.items()],
        "Labels": {**shape.labels, IMAGE: shape.image.name},
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": host,
    }


def info_of(found: Document, marks: Marks) -> ContainerInfo:
    """The entry in the list of containers. `found` is the engine's description of a serving container."""
    host, config = found["HostConfig"], found["Config"]
    gpus: list[Document] = host.get("DeviceRequests") or []
    # A folder mounted at its own path holds the files of calls.
    folders = {str(one["Source"]): str(one["Destination"]) for one in found["Mounts"] if one["RW"] and one["Source"] != one["Destination"]}
    return ContainerInfo(
        container_id=found["Id"],
        tool_id=marks.tool,
        image=config["Labels"].get(IMAGE) or config["Image"],
        volumes=folders,
        mem_limit=str(host["Memory"]),
        nano_cpus=host["NanoCpus"],
        use_gpu=bool(gpus),
        gpu_count=gpus[0]["Count"] if gpus else -1,
        created_at=moment_of(found["Created"]),
    )


def entry(way: SandboxNetwork, carried: Carried) -> list[str]:
    """The first process of the container, run by the carried Python: it forwards connections and reaps orphans."""
    return [*carried.command, *way.prefix[1:]]


def entered(way: SandboxNetwork, carried: Carried) -> list[Document]:
    """The mounts of our own files in a container."""
    ours = [bind(mount.source, str(mount.target), writable=mount.writable) for mount in way.mounts]
    return [bind(carried.folder, INSIDE), bind(carried.library, carried.library_inside), *ours]


def moment_of(said: object) -> datetime:
    """A time of the engine, without the nanoseconds, which Python does not parse."""
    return datetime.fromisoformat(str(said)[:19]).replace(tzinfo=UTC)


async def inspected(engine: Engine, container: str) -> Document:
    """Raises EngineFailure."""
    return await engine.ask(lambda api: api.inspect_container(container))


async def created(engine: Engine, config: Document, name: str) -> str:
    """Create a container; returns its id. Raises EngineFailure. A cancellation leaves no container."""
    making = asyncio.ensure_future(engine.ask(lambda api: api.create_container_from_config(config, name)))
    try:
        return str((await asyncio.shield(making))["Id"])
    except asyncio.CancelledError:
        await asyncio.wait([making])
        if making.exception() is None:
            with contextlib.suppress(EngineFailure):
                await removed(engine, str(making.result()["Id"]))
        raise
    except EngineUnavailable:
        with contextlib.suppress(EngineFailure):
            await _unheard_of(engine, config["Labels"][SEAL])
        raise


async def removed(engine: Engine, container: str) -> None:
    """Remove a container by id, as its name may be another's by now. Raises EngineFailure; a cancellation does not stop the removal."""
    await asyncio.shield(engine.ask(lambda api: api.remove_container(container, v=True, force=True)))


async def _unheard_of(engine: Engine, seal: str) -> None:
    """Remove a container whose id the engine did not return, found by its seal. Raises EngineFailure."""
    for one in await engine.ask(lambda api: api.containers(all=True, filters={"label": f"{SEAL}={seal}"})):
        await removed(engine, str(one["Id"]))
