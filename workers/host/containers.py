"""The containers of this host: made from settings, found again after a restart, swept of what nobody owns."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from api.ports import Check, LackingError
from engine.registry.registry import ToolRegistry
from engine.runtimes.auditing.audit import Audit
from engine.runtimes.docker.book import ContainerBook
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine, EngineFailure, reason_of
from engine.runtimes.docker_engine.labels import Marks
from engine.runtimes.docker_engine.leftovers import names_of, sweep_gone
from engine.runtimes.docker_engine.limits import bytes_of
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.docker_engine.volumes import renamed_volumes
from engine.runtimes.environments.environments import Indexes
from engine.runtimes.failures import NotSent, StartFailed
from engine.runtimes.process.ownership import Owner
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import AnyRuntime
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identities import Identities
from engine.runtimes.sandbox.identity import Identity
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import DockerSource
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.shared_processes import name_inside, place_of, process_key
from workers.failures import CannotRun
from workers.parts import Store
from workers.settings.hosts import RunningSettings
from workers.settings.tools import ContainerSettings
from workers.state.directory import StateDirectory

__all__ = ["ImageSources", "closed_containers", "docker_parts", "engine_check", "found_containers", "lasting_names"]

_SWEEP_S = 300.0
_CHECK_S = 2.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def docker_parts(
    settings: ContainerSettings,
    running: RunningSettings,
    data: Path,
    indexes: Indexes,
    state: StateDirectory,
    owner: Owner,
    policy: SandboxPolicy,
    engine: Engine,
    egress: Egress,
    audit: Audit,
    book: ContainerBook,
    secrets: Callable[[str], str | None],
    users: Identities | None,
    user: Identity | None,
) -> DockerParts:
    """Raises CannotRun when a setting cannot be used."""
    try:
        bytes_of(settings.docker_mem_limit)
    except ValueError as error:
        raise CannotRun(f"TOOL_AGENT_DOCKER_MEM_LIMIT: {error}") from error
    try:
        Seals.of(state.root)
    except OSError as error:
        raise CannotRun(str(error)) from error
    docker = DockerSettings(
        data=data,
        state=state.root,
        owner=owner,
        host=state.host,
        base_image=settings.docker_base_image,
        mem_limit=settings.docker_mem_limit,
        nano_cpus=settings.docker_nano_cpus,
        ttl_s=settings.docker_ttl_seconds,
        port_start=settings.docker_port_start,
        start_timeout_s=running.tool_health_timeout_s,
        build_timeout_s=running.tool_start_timeout_s,
        stop_grace_s=running.stop_grace_s,
        policy=policy,
        identity=user,
        calls=state.calls,
    )
    return DockerParts(docker, engine, egress, indexes, audit=audit, book=book, secrets=secrets, users=users)


async def lasting_names(parts: DockerParts) -> tuple[str, ...]:
    """Of the containers that outlived the last worker. Without an engine there are none, and it is said."""
    try:
        return await names_of(parts.engine, parts.settings)
    except EngineFailure as error:
        _log.info("no_docker_engine", reason=str(error), effect="docker tools are unavailable")
        return ()


def engine_check(runtimes: Mapping[str, AnyRuntime]) -> Check:
    """Raises LackingError with the reason why docker tools are unavailable."""
    runtime = runtimes.get("docker")

    async def check() -> None:
        if isinstance(runtime, DockerRuntime):
            try:
                async with asyncio.timeout(_CHECK_S):
                    await runtime.parts.engine.check()
            except (EngineFailure, TimeoutError) as error:
                raise LackingError(f"Docker tools are unavailable: {reason_of(error)}") from error

    return check


@asynccontextmanager
async def found_containers(
    runtimes: Mapping[str, AnyRuntime], supervisor: Supervisor, store: Store
) -> AsyncGenerator[BuildContainers | None]:
    """Serving containers that a killed worker left get their routes back, or are removed; build containers are minded."""
    runtime = runtimes.get("docker")
    if not isinstance(runtime, DockerRuntime):
        yield None
        return
    builds = BuildContainers(runtime.parts)
    try:
        versions = await store.registry.list_versions()
        places = {place_of(entry.manifest.tool_id, source) for entry in versions for source in entry.sources}
        await asyncio.to_thread(renamed_volumes, runtime.parts.settings.state / "volumes", places)
        await builds.find()
        await asyncio.gather(*[_restored(marks, supervisor, store) for marks in await runtime.found()])
        for name in await runtime.sweep():
            _log.warning("removed_leftover_container", name=name)
    except (EngineFailure, StartFailed) as error:
        _log.info("containers_not_looked_for", reason=str(error))
    sweeping = asyncio.create_task(_swept_again_and_again(runtime, store), name="sweep of images")
    try:
        yield builds
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
        await builds.close()


async def _swept_again_and_again(runtime: DockerRuntime, store: Store) -> None:
    while True:
        try:
            for name in await sweep_gone(runtime.parts.engine, runtime.parts.settings.seals):
                _log.warning("removed_of_state_directory_that_is_gone", name=name)
            for name in await runtime.sweep_images(ImageSources(store.registry).named):
                _log.info("removed_image", name=name, reason="no version of a tool is built like this any more")
        except (EngineFailure, StoreUnavailableError) as error:
            _log.info("images_not_swept", reason=str(error))
        await asyncio.sleep(_SWEEP_S)


class ImageSources:
    """The sources that images are built of, in all versions of all tools: read once, when the first is asked for."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._entries: tuple[ToolEntry, ...] | None = None

    async def named(self, name: str) -> tuple[DockerSource, ...]:
        """Those whose image has this name: that of the tool, or of the process that it shares."""
        if self._entries is None:
            self._entries = await self._registry.list_versions()
        found = ((entry.manifest.tool_id, source) for entry in self._entries for source in entry.sources)
        return tuple(source for tool_id, source in found if isinstance(source, DockerSource) and name_inside(tool_id, source) == name)


async def closed_containers(runtimes: Mapping[str, AnyRuntime]) -> None:
    """The containers that are up stay."""
    runtime = runtimes.get("docker")
    if isinstance(runtime, DockerRuntime):
        await runtime.close()


async def _restored(marks: Marks, supervisor: Supervisor, store: Store) -> None:
    """What cannot be had back is swept, and started anew by the next call."""
    entry = await store.registry.entry(marks.tool, marks.version)
    sources = [index for index, source in enumerate(entry.sources) if isinstance(source, DockerSource)] if entry else []
    if entry is None or not sources:
        return
    try:
        await supervisor.start(entry, lambda told: _log.info("container", tool=marks.tool, progress=told), sources)
        for other, index in await _sharing(entry, supervisor, store):
            await supervisor.start(other, lambda told: _log.info("container", tool=marks.tool, progress=told), [index])
    except NotSent as failure:
        _log.warning("container_not_found_again", tool=marks.tool, reason=failure.message)


async def _sharing(entry: ToolEntry, supervisor: Supervisor, store: Store) -> list[tuple[ToolEntry, int]]:
    """The other tools that are in the process that this one is in now, and the source by which they are."""
    route = supervisor.route(entry.manifest.tool_id)
    key = process_key(entry.manifest, entry.sources[route.active_source]) if route else None
    if key is None:
        return []
    others = [other for other in await store.registry.list_entries() if other.manifest.tool_id != entry.manifest.tool_id]
    return [(other, at) for other in others for at, source in enumerate(other.sources) if process_key(other.manifest, source) == key]
