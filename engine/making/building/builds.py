"""The input and the result of a build."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.making.failures import LeftOut
from engine.making.openapi.documents.document import OpenApiDocument
from engine.making.openapi.documents.reading import DocumentReader
from engine.making.openapi.tools import Described, SourceOf, draft
from engine.runtimes.environments.execution import Executor
from engine.runtimes.runtime import Progress
from toolagent.contracts.making import Candidate

_MOST_TOLD = 50
_LONGEST_TOLD = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where a project goes: `folder` on this host, which sources name as `host_dir`. `work` is for files on the way there."""

    folder: Path
    host_dir: str
    work: Path


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate. `folders`, by tool id, go to the content store; the source then names the archive as its `content`."""

    candidate: Candidate
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    """What did not fit in its environment, and the replacement."""

    @property
    def told(self) -> tuple[str, ...]:
        """A line for each omission, up to a limit, then how many more there are."""
        lines = [" ".join(str(one).split())[:_LONGEST_TOLD] for one in self.left_out[:_MOST_TOLD]]
        more = len(self.left_out) - _MOST_TOLD
        return (*lines, *([f"and {more} more"] if more > 0 else []))


@dataclass(frozen=True, slots=True)
class Job:
    """A build of `repository`. `about` names the tools, `hosts` are those they may reach."""

    repository: Path
    about: Described
    place: Place
    progress: Progress
    hosts: tuple[str, ...] = ()

    def built(self, candidate: Candidate, left_out: Iterable[LeftOut] = (), notes: tuple[str, ...] = ()) -> Built:
        """The result, if all its tools run from the place's folder."""
        folders = dict.fromkeys((entry.manifest.tool_id for entry in candidate.entries), self.place.folder)
        return Built(candidate, folders, tuple(left_out), notes)

    async def drafted(
        self, document: OpenApiDocument, sources: SourceOf, left_out: Iterable[LeftOut] = (), notes: tuple[str, ...] = ()
    ) -> Built:
        """The tools of a document, all run from the place's folder. Raises BuildFailed."""
        made = await asyncio.to_thread(draft, document, self.about, sources)
        return self.built(made.candidate, (*left_out, *made.left_out), notes)

    async def document(self, executor: Executor | None, path: str) -> OpenApiDocument:
        """A document of the repository. Raises DocumentRefused, ScriptFailure (`UnavailableError`)."""
        return await DocumentReader(executor, self.place.work.with_name("document")).read(self.repository, path)
