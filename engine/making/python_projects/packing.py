"""Packs a Python project as a tool: our launcher, its lock, its package and its files."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from engine.disk.removal import remove
from engine.making.python_projects.launcher import REPOSITORY, SITE, launcher_of
from engine.making.python_projects.preparing import Prepared
from engine.making.python_sources.projects import folder_text
from engine.making.repositories.packaging import Room, copy_into, open_to_all, part_with_room
from toolagent_service.contracts.plans import AsgiBuild

_INSIDE = Path(__file__).parents[1] / "inside"
WORKING_FOLDER, BRIDGE = _INSIDE / "working_folder.py", _INSIDE / "mcp_bridge.py"
_BESIDE = ("working_folder.py", *(path.relative_to(_INSIDE).as_posix() for path in sorted((_INSIDE / "tool_agent_serving").glob("*.py"))))


def with_room(plan: AsgiBuild, repository: Path) -> tuple[AsgiBuild, Path]:
    """The plan and the folder to bring: the whole repository, else the folder of the app's project. Raises ValueError. Blocks."""
    brought = part_with_room(repository, plan.project, plan.root)
    if brought == repository:
        return plan, repository
    return plan.model_copy(update={"project": "", "root": folder_text(PurePosixPath(plan.root).relative_to(plan.project))}), brought


def pack_asgi(plan: AsgiBuild, repository: Path, prepared: Prepared, into: Path) -> None:
    """Makes the folder `into` anew: `main.py`, its lock and the repository. Raises ValueError, OSError. Blocks."""
    pack_project({"main.py": launcher_of(plan), **{name: (_INSIDE / name).read_text() for name in _BESIDE}}, prepared, into)
    copy_into(repository, into / REPOSITORY, Room())
    open_to_all(into)


def pack_project(files: Mapping[str, str], prepared: Prepared, into: Path) -> None:
    """Makes the folder `into` anew: these files, the lock, and the project's own package, which is moved to `site`.

    Raises ValueError, OSError. Blocks.
    """
    remove(into)
    into.mkdir(parents=True)
    for name, text in {**prepared.files, **files}.items():
        (into / name).parent.mkdir(exist_ok=True)
        (into / name).write_text(text)
    if prepared.installed is not None:
        prepared.installed.site.rename(into / SITE)
    open_to_all(into)
