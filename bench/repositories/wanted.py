"""What was drawn, and a clone of it that can be cloned again: of one commit, without what the store of snapshots lacks."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue

Calls: TypeAlias = dict[str, dict[str, JsonValue]]
"""By repository: `by_hand`, whether a person with its README alone starts it here, and `why`. Of those that start: `tool` (what follows the
name of the task), `params`, `expects`, and `task`, more of its specification.
"""

_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")


@dataclass(frozen=True, slots=True)
class Wanted:
    kind: str
    of: str
    repository: str
    commit: str
    document: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind}/{self.of} {self.repository}"

    @property
    def tool_name(self) -> str:
        owner, _, name = self.repository.lower().partition("/")
        return "r_" + "".join(one if one.isalnum() and one.isascii() else "_" for one in f"{name}_{owner}")[:60].strip("_")


def repositories_of(drawn: dict[str, Any]) -> Iterator[Wanted]:
    for one in drawn["repositories"]:
        yield Wanted(one["kind"], one["of"], one["repository"], one["commit"], one.get("document", ""))


def calls_of(told: dict[str, Any] | None) -> Calls:
    return {one["repository"]: one for one in (told or {}).get("calls", ())}


def by_hand_of(call: dict[str, JsonValue] | None) -> tuple[bool | None, str]:
    """Whether it starts by hand, None where nobody has tried, and why."""
    told = call or {}
    starts = told.get("by_hand")
    return starts if isinstance(starts, bool) else None, str(told.get("why", ""))


def clone_of(clones: Path, wanted: Wanted, into: Path) -> Path:
    """Its folder. The working tree is committed anew, as snapshots may lack some of the large files that the commit names."""
    target = into / wanted.tool_name
    source = clones / wanted.repository.replace("/", "+")
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    for arguments in (("init", "-q"), ("add", "-A", "-f"), ("commit", "-q", "--no-verify", "-m", wanted.commit)):
        subprocess.run([*_GIT, *arguments], cwd=target, check=True, capture_output=True)
    return target
