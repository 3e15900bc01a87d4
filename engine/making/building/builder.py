"""Builds tools without a model, along each of the plans that need none."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from engine.making.building.builds import Built, Job
from engine.making.building.live_documents import LEFT_OUT, OWN_DOCUMENT, PATHS, live_document, not_started
from engine.making.building.tool_file_entries import left_out_of, tool_file_candidate
from engine.making.failures import BuildFailed, LeftOut
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument, part
from engine.making.openapi.documents.reading import DocumentReader
from engine.making.openapi.documents.servers import require_public
from engine.making.openapi.sources import docker_sources, local_sources, remote_sources
from engine.making.openapi.tools import draft
from engine.making.python_projects.launcher import SERVERS
from engine.making.python_projects.packing import pack_asgi, with_room
from engine.making.python_projects.preparing import Order, PythonProjects
from engine.making.repositories.packaging import pack_repository, require_room
from engine.network.addresses import Resolve, resolve
from engine.runtimes.environments.execution import Executor
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Runtime
from toolagent.contracts.sources import DockerSource, LocalSource
from toolagent_service.contracts.plans import AsgiBuild, DockerBuild, OpenApiRemote, ToolFileBuild

S = TypeVar("S", LocalSource, DockerSource)


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

    async def of_tool_files(self, plan: ToolFileBuild, job: Job) -> Built:
        """Scripts that name their files have these alone, in folders below `place.work`. Raises BuildFailed."""
        repository = job.repository
        try:
            candidate, folders = await asyncio.to_thread(tool_file_candidate, repository, plan.paths, job.about, job.place.work / "scripts")
        except (OSError, ValueError) as error:
            raise BuildFailed(str(error)) from error
        return Built(candidate, folders, await asyncio.to_thread(left_out_of, repository, plan.paths))

    async def remote(self, plan: OpenApiRemote, job: Job) -> Built:
        """Raises BuildFailed, also for a server at an address that is not public."""
        document = await self._document(plan.path, job)
        if plan.server_url != document.server_url:
            document = document.served_at(plan.server_url)
        try:
            await require_public(document.server_url, self._private_hosts, self._resolve)
            sources = remote_sources(document, job.about.tool_name)
        except DocumentRefused as error:
            raise BuildFailed(f"{plan.path}: {error}") from error
        made = await asyncio.to_thread(draft, document, job.about, sources)
        return Built(made.candidate, left_out=made.left_out)

    async def asgi(self, plan: AsgiBuild, job: Job) -> Built:
        """Packs the project into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        place = job.place
        try:
            plan, brought = await asyncio.to_thread(with_room, plan, job.repository)
            order = Order(brought, plan.project, place.work, job.about.tool_name, SERVERS[plan.interface], needs_package=False)
            prepared = await self._projects.prepare(order, job.progress)
            await asyncio.to_thread(pack_asgi, plan, brought, prepared, place.folder)
        except (ValueError, OSError) as error:
            raise BuildFailed(f"The repository cannot become a local tool: {error}") from error
        source = LocalSource(host_dir=place.host_dir, environment=self._environment)
        by_us = plan.interface != "asgi"
        asked = await self._asked(self._local, source, job, is_described_by_us=by_us)
        document = asked or await self._in_tree(plan.document, job)
        try:
            built = await self._of_local(document, job)
        except BuildFailed as failure:
            # What a document does not describe may be what needs no login.
            own = by_us and await self._asked(self._local, source, job, is_described_by_us=True, paths=(OWN_DOCUMENT,))
            if not own:
                raise
            built = await self._of_local(own, job)
            built = replace(built, notes=(f"Its routes were read, as its document gives no tool: {failure.message}",))
        return replace(built, notes=(*_narrowed(job.repository, brought), *prepared.notes, *built.notes))

    async def _of_local(self, document: OpenApiDocument, job: Job) -> Built:
        """Raises BuildFailed."""
        document = replace(document, gives_text=True)
        sources = local_sources(document, job.place.host_dir, self._environment)
        made = await asyncio.to_thread(draft, document, job.about, sources)
        return job.built(made.candidate, (*_told_by_us(document), *made.left_out))

    async def docker(self, plan: DockerBuild, job: Job) -> Built:
        """The image is built of the repository as it is, copied to `place.folder`. Raises BuildFailed."""
        if self._docker is None:
            raise BuildFailed("There is no Docker engine on this host. Start one, or ask for the runtime `local`.")
        place = job.place
        try:
            await asyncio.to_thread(require_room, job.repository)
            await asyncio.to_thread(pack_repository, job.repository, place.folder)
        except (ValueError, OSError) as error:
            raise BuildFailed(f"The repository cannot become an image: {error}") from error
        source = DockerSource(host_dir=place.host_dir, dockerfile=plan.dockerfile, internal_port=plan.port, environment=self._environment)
        hint = f" Does it listen on 0.0.0.0, at the port {plan.port} that the Dockerfile exposes?"
        document = await self._asked(self._docker, source, job, hint) or await self._in_tree(plan.document, job)
        sources = docker_sources(document, place.host_dir, plan.dockerfile, plan.port, self._environment)
        made = await asyncio.to_thread(draft, document, job.about, sources)
        return job.built(made.candidate, made.left_out)

    async def _asked(
        self, runtime: Runtime[S], source: S, job: Job, hint: str = "", *, is_described_by_us: bool = False, paths: Sequence[str] = PATHS
    ) -> OpenApiDocument | None:
        """Raises BuildFailed when it does not start; `hint` is for one that runs and does not answer."""
        job.progress("starting the app, to ask what it offers")
        try:
            return await live_document(runtime, source, job, is_described_by_us=is_described_by_us, paths=paths)
        except StartFailed as failure:
            raise not_started(failure, hint) from failure

    async def _in_tree(self, path: str | None, job: Job) -> OpenApiDocument:
        if path is None:
            message = (
                "The app says nothing of what it offers (`/openapi.json`), its routes cannot be read, and no OpenAPI document is in the "
                "repository."
            )
            raise BuildFailed(message)
        return await self._document(path, job)

    async def _document(self, path: str, job: Job) -> OpenApiDocument:
        """Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        try:
            return await DocumentReader(self._executor, job.place.work.with_name("document")).read(job.repository, path)
        except DocumentRefused as error:
            raise BuildFailed(f"{path}: {error}") from error


def _narrowed(repository: Path, brought: Path) -> tuple[str, ...]:
    if brought == repository:
        return ()
    return (f"Only its folder {brought.relative_to(repository)} was taken: the whole repository is larger than a tool may be.",)


def _told_by_us(document: OpenApiDocument) -> tuple[LeftOut, ...]:
    """What our launcher left out of the document that it wrote."""
    return tuple(LeftOut(name, str(reason)) for name, reason in part(document.root.get(LEFT_OUT)).items())
