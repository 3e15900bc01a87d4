"""Builds tools without a model, along each of the plans that need none."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from engine.making.building.live_documents import LEFT_OUT, OWN_DOCUMENT, PATHS, live_document
from engine.making.building.tool_file_entries import left_out_of, tool_file_candidate
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument, part
from engine.making.openapi.documents.reading import DocumentReader
from engine.making.openapi.documents.servers import require_public
from engine.making.openapi.operations import LeftOut
from engine.making.openapi.sources import docker_sources, local_sources, remote_sources
from engine.making.openapi.tools import Described, Drafted, NoTools, SourceOf, draft
from engine.making.python_projects.launcher import SERVERS
from engine.making.python_projects.packing import pack_asgi, with_room
from engine.making.python_projects.preparing import Order, PythonProjects
from engine.making.python_sources.wanted import NotWanted
from engine.making.repositories.packaging import pack_repository, require_room
from engine.making.uv.runs import LockFailed
from engine.network.addresses import Resolve, resolve
from engine.runtimes.environments.execution import Executor
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress, Runtime, ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource
from toolagent_service.contracts.plans import AsgiBuild, DockerBuild, OpenApiRemote, ToolFileBuild

_ASK_S = 30.0
_LAST = 300
_LOGS = frozenset({"stderr", "log"})
"""Where runtimes put what a program wrote."""
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"(\w+\.)*\w*(Error|Exception|Invalid)(:|$)")
_CALL = "call-openapi-document"
_MOST_TOLD = 50
_LONGEST_TOLD = 200

S = TypeVar("S", LocalSource, DockerSource)


class BuildFailed(Exception):
    """The plan does not lead to a tool; `told` is what was written on the way. The coding agent may do better."""

    def __init__(self, message: str, told: str = "") -> None:
        super().__init__(message)
        self.message, self.told = message, told


@dataclass(frozen=True, slots=True)
class Place:
    """Where a project is put: `folder` on this host, which a source names as `host_dir`. `work` is for the way there."""

    folder: Path
    host_dir: str
    work: Path


@dataclass(frozen=True, slots=True)
class Built:
    """`folders` are those to be kept in the content store, by the tool whose source is then to name the archive as its `content`."""

    candidate: Candidate
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    """What of its environment did not fit, and what was chosen instead."""


class ModellessBuilder:
    """`local` and `docker` start apps in the sandbox to ask them what they offer, with this `environment`. All that is built is data."""

    def __init__(
        self,
        projects: PythonProjects,
        local: Runtime[LocalSource],
        docker: Runtime[DockerSource] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        private_hosts: tuple[str, ...] = (),
        resolve: Resolve = resolve,
        executor: Executor | None = None,
    ) -> None:
        self._projects, self._local, self._docker, self._executor = projects, local, docker, executor
        self._environment = dict(environment or {})
        self._private_hosts, self._resolve = private_hosts, resolve

    async def of_tool_files(self, plan: ToolFileBuild, repository: Path, about: Described, place: Place) -> Built:
        """Scripts that name their files have these alone, in folders below `place.work`. Raises BuildFailed."""
        try:
            candidate, folders = await asyncio.to_thread(tool_file_candidate, repository, plan.paths, about, place.work / "scripts")
        except (OSError, ValueError) as error:
            raise BuildFailed(str(error)) from error
        return Built(candidate, folders, await asyncio.to_thread(left_out_of, repository, plan.paths))

    async def remote(self, plan: OpenApiRemote, repository: Path, about: Described, work: Path) -> Built:
        """Raises BuildFailed, also for a server at an address that is not public."""
        document = await self._document(repository, plan.path, work)
        if plan.server_url != document.server_url:
            document = document.served_at(plan.server_url)
        try:
            await require_public(document.server_url, self._private_hosts, self._resolve)
            sources = remote_sources(document, about.tool_name)
        except DocumentRefused as error:
            raise BuildFailed(f"{plan.path}: {error}") from error
        return built_of(await drafted(document, about, sources))

    async def asgi(self, plan: AsgiBuild, repository: Path, about: Described, place: Place, progress: Progress) -> Built:
        """Packs the project into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        try:
            plan, brought = await asyncio.to_thread(with_room, plan, repository)
            site = place.work.with_name("site")
            order = Order(brought, plan.project, SERVERS[plan.interface], site, place.work, about.tool_name, needs_package=False)
            prepared = await self._projects.prepare(order, progress)
            await asyncio.to_thread(pack_asgi, plan, brought, prepared, place.folder)
        except LockFailed as error:
            raise BuildFailed(error.message, error.told) from error
        except (NotWanted, ValueError, OSError) as error:
            raise BuildFailed(f"The repository cannot become a local tool: {error}") from error
        source = LocalSource(host_dir=place.host_dir, environment=self._environment)
        by_us = plan.interface != "asgi"
        asked = await self._asked(self._local, source, about, place, progress, is_described_by_us=by_us)
        document = asked or await self._in_tree(plan.document, repository, place.work)
        try:
            built = await self._of_local(document, about, place)
        except BuildFailed as failure:
            # What a document does not describe may be what needs no login.
            own = by_us and await self._asked(self._local, source, about, place, progress, is_described_by_us=True, paths=(OWN_DOCUMENT,))
            if not own:
                raise
            built = await self._of_local(own, about, place)
            built = replace(built, notes=(f"Its routes were read, as its document gives no tool: {failure.message}",))
        return replace(built, notes=(*_narrowed(repository, brought), *prepared.notes, *built.notes))

    async def _of_local(self, document: OpenApiDocument, about: Described, place: Place) -> Built:
        """Raises BuildFailed."""
        sources = local_sources(document, place.host_dir, self._environment)
        built = built_of(await drafted(document, about, sources), place.folder)
        return replace(built, left_out=(*_told_by_us(document), *built.left_out))

    async def docker(self, plan: DockerBuild, repository: Path, about: Described, place: Place, progress: Progress) -> Built:
        """The image is built of the repository as it is, copied to `place.folder`. Raises BuildFailed."""
        if self._docker is None:
            raise BuildFailed("There is no Docker engine on this host. Start one, or ask for the runtime `local`.")
        try:
            await asyncio.to_thread(require_room, repository)
            await asyncio.to_thread(pack_repository, repository, place.folder)
        except (ValueError, OSError) as error:
            raise BuildFailed(f"The repository cannot become an image: {error}") from error
        source = DockerSource(host_dir=place.host_dir, dockerfile=plan.dockerfile, internal_port=plan.port, environment=self._environment)
        hint = f" Does it listen on 0.0.0.0, at the port {plan.port} that the Dockerfile exposes?"
        document = await self._asked(self._docker, source, about, place, progress, hint) or await self._in_tree(
            plan.document, repository, place.work
        )
        sources = docker_sources(document, place.host_dir, plan.dockerfile, plan.port, self._environment)
        return built_of(await drafted(document, about, sources), place.folder)

    async def _asked(
        self,
        runtime: Runtime[S],
        source: S,
        about: Described,
        place: Place,
        progress: Progress,
        hint: str = "",
        *,
        is_described_by_us: bool = False,
        paths: Sequence[str] = PATHS,
    ) -> OpenApiDocument | None:
        """Raises BuildFailed when it does not start; `hint` is for one that runs and does not answer."""
        request = ToolRequest(_CALL, {}, _ASK_S, place.work)
        progress("starting the app, to ask what it offers")
        try:
            manifest = ToolManifest(tool_id=about.tool_name, name=about.tool_name)
            return await live_document(runtime, manifest, source, request, progress, is_described_by_us=is_described_by_us, paths=paths)
        except StartFailed as failure:
            raise not_started(failure, hint) from failure

    async def _in_tree(self, path: str | None, repository: Path, work: Path) -> OpenApiDocument:
        if path is None:
            message = (
                "The app says nothing of what it offers (`/openapi.json`), its routes cannot be read, and no OpenAPI document is in the "
                "repository."
            )
            raise BuildFailed(message)
        return await self._document(repository, path, work)

    async def _document(self, repository: Path, path: str, work: Path) -> OpenApiDocument:
        """Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        try:
            return await DocumentReader(self._executor, work.with_name("document")).read(repository, path)
        except DocumentRefused as error:
            raise BuildFailed(f"{path}: {error}") from error


def _narrowed(repository: Path, brought: Path) -> tuple[str, ...]:
    if brought == repository:
        return ()
    return (f"Only its folder {brought.relative_to(repository)} was taken: the whole repository is larger than a tool may be.",)


def _told_by_us(document: OpenApiDocument) -> tuple[LeftOut, ...]:
    """What our launcher left out of the document that it wrote."""
    return tuple(LeftOut(name, str(reason)) for name, reason in part(document.root.get(LEFT_OUT)).items())


def not_started(failure: StartFailed, hint: str) -> BuildFailed:
    is_mute = "last_answer" in failure.details
    logs = (failure.details.get(name) for name in _LOGS) if failure.details.keys() & _LOGS else failure.details.values()
    told = "\n".join(value for value in logs if isinstance(value, str) and value)
    if failure.error_type is not ErrorType.UNAVAILABLE:
        # There is nothing to start: no image, no environment.
        return BuildFailed(failure.message, told)
    # What a program says last is why it ended, and what it raised says so before other lines.
    lines = [line.strip() for line in told.rpartition(_TRACEBACK)[2].splitlines() if line.strip()]
    raised = (line for line in reversed(lines) if _TRACEBACK in told and _RAISED.match(line))
    last = next(raised, lines[-1] if lines else "")[:_LAST]
    words = f" It said last: {last}" if last and last not in failure.message else ""
    return BuildFailed(f"The app does not start: {failure.message}{hint if is_mute else ''}{words}", told)


async def drafted(document: OpenApiDocument, about: Described, sources: SourceOf) -> Drafted:
    try:
        return await asyncio.to_thread(draft, document, about, sources)
    except NoTools as error:
        raise BuildFailed(str(error)) from error


def told_of(left_out: Sequence[LeftOut]) -> tuple[str, ...]:
    """Each in a line; of very many the first, and how many more there are."""
    lines = [" ".join(f"{one.operation}: {one.reason}".split())[:_LONGEST_TOLD] for one in left_out[:_MOST_TOLD]]
    more = len(left_out) - _MOST_TOLD
    return (*lines, *([f"and {more} more"] if more > 0 else []))


def built_of(made: Drafted, folder: Path | None = None) -> Built:
    ids = (entry.manifest.tool_id for entry in made.candidate.entries)
    return Built(made.candidate, dict.fromkeys(ids, folder) if folder else {}, made.left_out)
