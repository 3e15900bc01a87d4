"""What a build is given, and what comes of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.making.failures import LeftOut
from engine.making.openapi.tools import Described
from engine.runtimes.runtime import Progress
from toolagent.contracts.making import Candidate

_MOST_TOLD = 50
_LONGEST_TOLD = 200


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

    @property
    def told(self) -> tuple[str, ...]:
        """What was left out, each in a line; of very many the first, and how many more there are."""
        lines = [" ".join(str(one).split())[:_LONGEST_TOLD] for one in self.left_out[:_MOST_TOLD]]
        more = len(self.left_out) - _MOST_TOLD
        return (*lines, *([f"and {more} more"] if more > 0 else []))


@dataclass(frozen=True, slots=True)
class Job:
    """Of what is built, what the tools are called, where they are put, and who is told how far it is.

    `hosts` are those that they may reach.
    """

    repository: Path
    about: Described
    place: Place
    progress: Progress
    hosts: tuple[str, ...] = ()

    def built(self, candidate: Candidate, left_out: Iterable[LeftOut] = (), notes: tuple[str, ...] = ()) -> Built:
        """All tools of it run from what was put into the folder."""
        folders = dict.fromkeys((entry.manifest.tool_id for entry in candidate.entries), self.place.folder)
        return Built(candidate, folders, tuple(left_out), notes)
