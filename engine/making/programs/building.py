"""Builds tools from the command line programs that a Python project installs."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from engine.making.building.builds import Built, Job
from engine.making.building.imported_packages import ImportedPackages
from engine.making.failures import NOT_NAMED, BuildFailed, LeftOut, failing
from engine.making.programs.commands import Command
from engine.making.programs.reading import Readable, read_programs
from engine.making.programs.tools import commands_file, fitting, program_candidate, script_names
from engine.making.python_projects.installs import Installed
from engine.making.python_projects.packing import pack_project
from engine.making.python_projects.preparing import Order, Prepared, PythonProjects
from engine.making.python_sources.imports import folder_above
from engine.making.python_sources.projects import folder_text, project_folder
from engine.making.recognisers.console_script import recognise_console_scripts
from engine.making.repositories.packaging import pack_repository
from engine.making.repositories.trees import Tree
from engine.runtimes.environments.execution import Executor
from toolagent.contracts.sources import ScriptLanguage
from toolagent_service.contracts.plans import ProgramBuild
from toolagent_service.making.wildcards import chosen, meaningless

_CHILD = Path(__file__).parent / "inside" / "program.py"
_SCRIPT = '''\
"""Runs `{command}`. Written by Tool Agent."""

from program import run

run({name!r})
'''
_TOLD = 5
_LONGEST_TOLD = 500


class ProgramBuilder:
    """Makes data and files, and registers nothing."""

    def __init__(self, projects: PythonProjects, executor: Executor, imported: ImportedPackages) -> None:
        self._projects, self._executor, self._imported = projects, executor, imported

    async def build(self, plan: ProgramBuild, job: Job) -> Built:
        """Packs launcher, package and lock into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        about, place = job.about, job.place
        with failing("The project cannot be installed"):
            prepared = await (self._of_files(plan, job) if plan.are_files else self._prepared(job.repository, plan.project, job))
        installed = prepared.installed
        if installed is None or not installed.scripts:
            raise BuildFailed("The package that was built installs no programs.")
        job.progress(f"reading the parsers of {', '.join([*installed.scripts][:_TOLD])[:_LONGEST_TOLD]}")
        readable = Readable(installed.scripts, installed.site, prepared.environment, place.work.with_name("reading"))
        commands, left = await read_programs(readable, self._executor)
        commands, unfit = await asyncio.to_thread(fitting, commands)
        left = (*left, *unfit)
        if not commands:
            raise BuildFailed(f"None of its programs can be a tool. {'; '.join(map(str, left[:_TOLD]))}")
        if told := meaningless(commands, about.operations, _names):
            raise BuildFailed(f"No command is meant: {told}")
        wanted, unwanted = chosen(commands, about.operations, _names)
        with failing("The project cannot be packed"):
            files = await asyncio.to_thread(program_files, wanted, installed.scripts)
            await asyncio.to_thread(pack_project, files, prepared, place.folder)
        others = await asyncio.to_thread(_of_other_folders, job.repository, plan.project) if plan.are_files else ()
        left_out = (*left, *(LeftOut(one.named, NOT_NAMED) for one in unwanted), *others)
        return job.built(program_candidate(wanted, about, ScriptLanguage.PYTHON, job.hosts), left_out, prepared.notes)

    async def _prepared(self, repository: Path, project: str, job: Job, *, needs_package: bool = True) -> Prepared:
        order = Order(repository, project, job.place.work, job.about.tool_name, needs_package=needs_package)
        return await self._projects.prepare(order, job.progress)

    async def _of_files(self, plan: ProgramBuild, job: Job) -> Prepared:
        """Treats the folder of the scripts as a package, or one above from which they import.

        A file declares the dependencies, or the scripts' imports do.
        """
        tree, folder = await asyncio.to_thread(Tree.read, job.repository), PurePosixPath(plan.project)
        above = await asyncio.to_thread(folder_above, tree, folder, [f"{name}.py" for name in plan.programs])
        site = job.place.work.with_name("scripts")
        root, told = await asyncio.to_thread(_pack, job.repository, above, folder, site)
        files = {name: (folder.relative_to(root) / f"{name}.py").as_posix() for name in plan.programs}
        home = await asyncio.to_thread(project_folder, tree, PurePosixPath(plan.project, "script.py"))
        repository, project, notes = (job.repository, folder_text(home), ()) if home is not None else (site, "", ())
        if home is None:
            lock, notes = await self._imported.lock_of(site, [*files.values()])
            await asyncio.to_thread((site / ("requirements.lock" if lock else "requirements.txt")).write_text, lock)
        prepared = await self._prepared(repository, project, job, needs_package=False)
        installed = Installed(site, job.about.tool_name, "", scripts=files)
        return replace(prepared, installed=installed, notes=(*told, *notes, *prepared.notes))


def _pack(repository: Path, above: PurePosixPath, folder: PurePosixPath, site: Path) -> tuple[PurePosixPath, tuple[str, ...]]:
    """The folder that was packed: `above`, or `folder` if only that fits; and notes. Raises as `pack_repository`. Blocks."""
    try:
        pack_repository(repository / above, site)
    except ValueError as error:
        pack_repository(repository / folder, site)
        return folder, (f"The folder above, from which its scripts import, was not packed: {error}",)
    return above, ()


def program_files(commands: Sequence[Command], targets: Mapping[str, str]) -> Mapping[str, str]:
    """A script for each command, and the files that the scripts share. Blocks."""
    scripts = {
        f"{name}.py": _SCRIPT.format(command=command.named, name=name)
        for command, name in zip(commands, script_names(commands), strict=True)
    }
    return {"program.py": _CHILD.read_text(), "commands.json": commands_file(commands, targets), **scripts}


def _of_other_folders(repository: Path, project: str) -> tuple[LeftOut, ...]:
    """The folders with programs besides this one. Blocks."""
    found = [PurePosixPath(one.path).parent for one in recognise_console_scripts(Tree.read(repository))]
    reason = "It has programs, too. Name it in `path` of another task to make tools of them."
    return tuple(LeftOut(folder_text(one) or "the top folder", reason) for one in found if folder_text(one) != project)


def _names(command: Command) -> tuple[str, ...]:
    return command.named, " ".join(command.words), "_".join(command.words), command.words[-1] if command.words else command.program
