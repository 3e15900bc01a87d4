"""Finds the containers of this host after a restart, and removes orphans."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import structlog

from engine.registry.registry import ToolRegistry
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import EngineFailure
from engine.runtimes.docker_engine.labels import Marks
from engine.runtimes.docker_engine.leftovers import sweep_gone
from engine.runtimes.docker_engine.volumes import renamed_volumes
from engine.runtimes.failures import NotSent, StartFailed
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import AnyRuntime
from engine.upkeep.rounds import repeated
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import DockerSource
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.shared_processes import name_inside, place_of, process_key

_SWEEP_S = 300.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def found_containers(
    runtimes: Mapping[str, AnyRuntime], supervisor: Supervisor, registry: ToolRegistry
) -> AsyncGenerator[BuildContainers | None]:
    """Gives serving containers of a killed worker their routes back, or removes them; watches build containers."""
    runtime = runtimes.get("docker")
    if not isinstance(runtime, DockerRuntime):
        yield None
        return
    builds = BuildContainers(runtime.parts)
    try:
        versions = await registry.list_versions()
        places = {place_of(entry.manifest.tool_id, source) for entry in versions for source in entry.sources}
        await asyncio.to_thread(renamed_volumes, runtime.parts.settings.state / "volumes", places)
        await builds.find()
        await asyncio.gather(*[_restored(marks, supervisor, registry) for marks in await runtime.found()])
        for name in await runtime.sweep():
            _log.warning("removed_leftover_container", name=name)
    except (EngineFailure, StartFailed) as error:
        _log.info("containers_not_looked_for", reason=str(error))
    try:
        async with repeated(partial(_sweep, runtime, registry), _SWEEP_S, "sweep of images"):
            yield builds
    finally:
        await builds.close()


async def _sweep(runtime: DockerRuntime, registry: ToolRegistry) -> None:
    try:
        for name in await sweep_gone(runtime.parts.engine, runtime.parts.settings.seals):
            _log.warning("removed_of_state_directory_that_is_gone", name=name)
        for name in await runtime.sweep_images(ImageSources(registry).named):
            _log.info("removed_image", name=name, reason="no version of a tool is built like this any more")
    except (EngineFailure, StoreUnavailableError) as error:
        _log.info("images_not_swept", reason=str(error))


class ImageSources:
    """The sources of images, in all versions of all tools. Reads them once, at the first question."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._entries: tuple[ToolEntry, ...] | None = None

    async def named(self, name: str) -> tuple[DockerSource, ...]:
        """The sources whose image has this name: that of the tool, or of its shared process."""
        if self._entries is None:
            self._entries = await self._registry.list_versions()
        found = ((entry.manifest.tool_id, source) for entry in self._entries for source in entry.sources)
        return tuple(source for tool_id, source in found if isinstance(source, DockerSource) and name_inside(tool_id, source) == name)


async def _restored(marks: Marks, supervisor: Supervisor, registry: ToolRegistry) -> None:
    """Restores a container. One that cannot be restored is removed, and the next call starts it anew."""
    entry = await registry.entry(marks.tool, marks.version)
    sources = [index for index, source in enumerate(entry.sources) if isinstance(source, DockerSource)] if entry else []
    if entry is None or not sources:
        return
    say = partial(_log.info, "container", tool=marks.tool)
    try:
        await supervisor.start(entry, lambda told: say(progress=told), sources)
        for other, index in await _sharing(entry, supervisor, registry):
            await supervisor.start(other, lambda told: say(progress=told), [index])
    except NotSent as failure:
        _log.warning("container_not_found_again", tool=marks.tool, reason=failure.message)


async def _sharing(entry: ToolEntry, supervisor: Supervisor, registry: ToolRegistry) -> list[tuple[ToolEntry, int]]:
    """The other tools that share the process of this one, each with the index of its source."""
    route = supervisor.route(entry.manifest.tool_id)
    key = process_key(entry.manifest, entry.sources[route.active_source]) if route else None
    if key is None:
        return []
    others = [other for other in await registry.list_entries() if other.manifest.tool_id != entry.manifest.tool_id]
    return [(other, at) for other in others for at, source in enumerate(other.sources) if process_key(other.manifest, source) == key]
