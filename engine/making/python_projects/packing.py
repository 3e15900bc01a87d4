"""Puts together what is kept of a Python project: our launcher, what says what it depends on, its package, its files."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from engine.disk.removal import remove
from engine.making.python_projects.launcher import REPOSITORY, SITE, launcher_of
from engine.making.python_projects.preparing import Prepared
from engine.making.python_sources.projects import folder_text
from engine.making.repositories.packaging import Room, copy_into, open_to_all, require_room
from toolagent_service.contracts.plans import AsgiBuild

_INSIDE = Path(__file__).parents[1] / "inside"
WORKING_FOLDER, BRIDGE = _INSIDE / "working_folder.py", _INSIDE / "mcp_bridge.py"
_BESIDE = ("working_folder.py", *(path.relative_to(_INSIDE).as_posix() for path in sorted((_INSIDE / "tool_agent_serving").glob("*.py"))))


def with_room(plan: AsgiBuild, repository: Path) -> tuple[AsgiBuild, Path]:
    """What is to be brought: the whole repository, else the folder of the app's project, where all is imported from there.

    Raises ValueError where there is no room for that. Blocks.
    """
    try:
        require_room(repository)
    except ValueError:
        root, project = PurePosixPath(plan.root), PurePosixPath(plan.project)
        if not project.parts or ".." in root.parts or not root.is_relative_to(project):
            raise
        require_room(repository / project)
        return plan.model_copy(update={"project": "", "root": folder_text(root.relative_to(project))}), repository / project
    return plan, repository


def pack_asgi(plan: AsgiBuild, repository: Path, prepared: Prepared, into: Path) -> None:
    """Makes the folder `into` anew: `main.py`, what it depends on, and the repository. Raises ValueError, OSError. Blocks."""
    pack_project({"main.py": launcher_of(plan), **{name: (_INSIDE / name).read_text() for name in _BESIDE}}, prepared, into)
    copy_into(repository, into / REPOSITORY, Room())
    open_to_all(into)


def pack_project(files: Mapping[str, str], prepared: Prepared, into: Path) -> None:
    """Makes the folder `into` anew: these files, what says what they depend on, and the project's own package in `site`. Blocks.

    The package is moved there. Raises ValueError, OSError.
    """
    remove(into)
    into.mkdir(parents=True)
    for name, text in {**prepared.files, **files}.items():
        (into / name).parent.mkdir(exist_ok=True)
        (into / name).write_text(text)
    if prepared.installed is not None:
        prepared.installed.site.rename(into / SITE)
    open_to_all(into)
