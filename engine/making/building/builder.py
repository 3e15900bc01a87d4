"""Builds tools from `*.tool.json` files, OpenAPI documents, apps of Python and Dockerfiles."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from engine.making.building.builds import Built, Job
from engine.making.building.live_documents import LEFT_OUT, OWN_DOCUMENT, PATHS, S, live_document, not_started
from engine.making.building.tool_file_entries import left_out_of, tool_file_candidate
from engine.making.failures import BuildFailed, LeftOut, failing
from engine.making.json_values import part
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
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


class ModellessBuilder:
    """`local` and `docker` start apps in the sandbox, with this `environment`, to read their documents. Registers nothing."""

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
        """Copies the files that a script names to folders below `place.work`. Raises BuildFailed."""
        try:
            candidate, folders = await asyncio.to_thread(
                tool_file_candidate, job.repository, plan.paths, job.about, job.place.work / "scripts"
            )
        except (OSError, ValueError) as error:
            raise BuildFailed(str(error)) from error
        return Built(candidate, folders, await asyncio.to_thread(left_out_of, job.repository, plan.paths))

    async def remote(self, plan: OpenApiRemote, job: Job) -> Built:
        """Raises BuildFailed, also if the server's address is not public."""
        with _refusals(plan.path):
            document = await job.document(self._executor, plan.path)
            if plan.server_url != document.server_url:
                document = document.served_at(plan.server_url)
            await require_public(document.server_url, self._private_hosts, self._resolve)
            sources = remote_sources(document, job.about.tool_name)
        made = await asyncio.to_thread(draft, document, job.about, sources)
        return Built(made.candidate, left_out=made.left_out)

    async def asgi(self, plan: AsgiBuild, job: Job) -> Built:
        """Packs the project into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        place = job.place
        with failing("The repository cannot become a local tool"):
            plan, brought = await asyncio.to_thread(with_room, plan, job.repository)
            order = Order(brought, plan.project, place.work, job.about.tool_name, SERVERS[plan.interface], needs_package=False)
            prepared = await self._projects.prepare(order, job.progress)
            await asyncio.to_thread(pack_asgi, plan, brought, prepared, place.folder)
        notes = prepared.notes
        if brought != job.repository:
            part = brought.relative_to(job.repository)
            notes = (f"Only its folder {part} was taken: the whole repository is larger than a tool may be.", *notes)
        source = LocalSource(host_dir=place.host_dir, environment=self._environment)
        by_us = plan.interface != "asgi"
        document = await self._document(self._local, source, job, plan.document, is_described_by_us=by_us)
        try:
            return await self._of_local(document, job, notes)
        except BuildFailed as failure:
            # The document may describe only what needs a login, the routes more.
            own = by_us and await self._asked(self._local, source, job, is_described_by_us=True, paths=(OWN_DOCUMENT,))
            if not own:
                raise
            return await self._of_local(own, job, (*notes, f"Its routes were read, as its document gives no tool: {failure.message}"))

    async def _of_local(self, document: OpenApiDocument, job: Job, notes: tuple[str, ...]) -> Built:
        """Raises BuildFailed."""
        # Operations that our launcher left out of the document that it wrote.
        left_out = [LeftOut(name, str(reason)) for name, reason in part(document.root.get(LEFT_OUT)).items()]
        return await job.drafted(document, local_sources(document, job.place.host_dir, self._environment), left_out, notes)

    async def docker(self, plan: DockerBuild, job: Job) -> Built:
        """Builds the image from a copy of the repository in `place.folder`. Raises BuildFailed."""
        if self._docker is None:
            raise BuildFailed("There is no Docker engine on this host. Start one, or ask for the runtime `local`.")
        place = job.place
        with failing("The repository cannot become an image"):
            await asyncio.to_thread(require_room, job.repository)
            await asyncio.to_thread(pack_repository, job.repository, place.folder)
        source = DockerSource(host_dir=place.host_dir, dockerfile=plan.dockerfile, internal_port=plan.port, environment=self._environment)
        hint = f" Does it listen on 0.0.0.0, at the port {plan.port} that the Dockerfile exposes?"
        document = await self._document(self._docker, source, job, plan.document, hint)
        return await job.drafted(document, docker_sources(document, place.host_dir, plan.dockerfile, plan.port, self._environment))

    async def _document(
        self, runtime: Runtime[S], source: S, job: Job, path: str | None, hint: str = "", *, is_described_by_us: bool = False
    ) -> OpenApiDocument:
        """The document of the running app, else the one of the repository. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        if document := await self._asked(runtime, source, job, hint, is_described_by_us=is_described_by_us):
            return document
        if path is None:
            raise BuildFailed(
                "The app says nothing of what it offers (`/openapi.json`), its routes cannot be read, and no OpenAPI document is in the "
                "repository."
            )
        with _refusals(path):
            return await job.document(self._executor, path)

    async def _asked(
        self, runtime: Runtime[S], source: S, job: Job, hint: str = "", *, is_described_by_us: bool = False, paths: Sequence[str] = PATHS
    ) -> OpenApiDocument | None:
        """Raises BuildFailed if the app does not start; `hint` is for an app that runs and does not answer."""
        job.progress("starting the app, to ask what it offers")
        try:
            return await live_document(runtime, source, job, is_described_by_us=is_described_by_us, paths=paths)
        except StartFailed as failure:
            raise not_started(failure, hint) from failure


@contextmanager
def _refusals(path: str) -> Generator[None]:
    try:
        yield
    except DocumentRefused as error:
        raise BuildFailed(f"{path}: {error}") from error
