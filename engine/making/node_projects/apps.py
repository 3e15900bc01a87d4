"""Builds local tools from a Node.js app: our launcher tries the ways to start it, and reads its document."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from engine.making.building.builds import Built, Job
from engine.making.building.live_documents import OWN_DOCUMENT, OWN_HEALTH, live_document, not_started
from engine.making.failures import BuildFailed
from engine.making.node_projects.preparing import PACKAGE, NodeProjects
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.operations import Operation
from engine.making.openapi.requests import RequestShape
from engine.making.openapi.sources import local_sources
from engine.making.repositories.packaging import open_to_all
from engine.runtimes.environments.execution import Executor
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Runtime
from toolagent.contracts.sources import LocalSource, ToolSource
from toolagent_service.contracts.plans import NodeAppBuild

_INSIDE = Path(__file__).parent / "inside"
_SERVING = "tool_agent_serving"
_MAIN = """\
// Serves the app of the project beside this file: `node main.mjs --port N`. Written by Tool Agent.
import {{ serve }} from "./{serving}/starting.mjs";

await serve({start}, Number(process.argv[process.argv.indexOf("--port") + 1]));
"""
_OF_ROUTES = "x-of-routes"
"""Key in the document of our launcher: the document was written from the routes."""
_MOST_STARTS = 3


class NodeAppBuilder:
    """`local` starts apps in the sandbox, with this `environment`. Makes data and files, and registers nothing."""

    def __init__(self, projects: NodeProjects, local: Runtime[LocalSource], executor: Executor, environment: Mapping[str, str]) -> None:
        self._projects, self._local, self._executor, self._environment = projects, local, executor, dict(environment)

    async def build(self, plan: NodeAppBuild, job: Job) -> Built:
        """Packs the project and our launcher into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        prepared = await self._projects.prepare(plan.project, job, is_whole=True)
        own = [one.removeprefix(f"{PACKAGE}/") for one in prepared.starts]
        starts = [one for one in dict.fromkeys((*own, *plan.starts)) if (job.place.folder / PACKAGE / one).is_file()][:_MOST_STARTS]
        document = await self._served(starts, job)
        if plan.document is not None and (document is None or document.root.get(_OF_ROUTES)):
            with suppress(DocumentRefused):
                document = await job.document(self._executor, plan.document)
        if document is None:
            raise BuildFailed(
                "The app says nothing of what it offers, its routes cannot be read, and no OpenAPI document is in the repository."
            )
        local = local_sources(document, job.place.host_dir, self._environment)

        def source(operation: Operation, shape: RequestShape, _health: str | None) -> ToolSource:
            # Our launcher has a health path of its own, whatever the app has.
            return local(operation, shape, None).model_copy(update={"health_path": OWN_HEALTH})

        return await job.drafted(document, source, notes=prepared.notes)

    async def _served(self, starts: Sequence[str], job: Job) -> OpenApiDocument | None:
        """The document of the first way that starts, which is kept. Raises BuildFailed."""
        failures: list[BuildFailed] = []
        source = LocalSource(host_dir=job.place.host_dir, environment=self._environment)
        for start in starts:
            job.progress(f"starting the app (node {start}), to ask what it offers")
            await asyncio.to_thread(_put, job.place.folder, start)
            try:
                return await live_document(self._local, source, job, is_described_by_us=True, paths=(OWN_DOCUMENT,))
            except StartFailed as failure:
                failures.append(not_started(failure, ""))
        if not failures:
            raise BuildFailed(
                "Nothing was found that could start the app. Say it in `scripts.start` of its package.json: `node server.js`."
            )
        told = "; ".join(f"node {start}: {one.message}" for start, one in zip(starts, failures, strict=True))
        raise BuildFailed(failures[0].message if len(failures) == 1 else told[:2_000], "\n".join(one.told for one in failures))


def _put(folder: Path, start: str) -> None:
    (folder / _SERVING).mkdir(exist_ok=True)
    for path in _INSIDE.glob("*.mjs"):
        (folder / _SERVING / path.name).write_text(path.read_text())
    (folder / "main.mjs").write_text(_MAIN.format(serving=_SERVING, start=json.dumps(start)))
    open_to_all(folder)
