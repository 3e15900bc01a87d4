"""Builds tools of the command line programs that a Python project installs."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.making.building.builder import BuildFailed, Built, Place
from engine.making.openapi.operations import LeftOut
from engine.making.openapi.tools import Described
from engine.making.programs.commands import Command
from engine.making.programs.reading import Readable, read_programs
from engine.making.programs.tools import commands_file, fitting, program_candidate, script_names
from engine.making.python_projects.packing import pack_project
from engine.making.python_projects.preparing import Order, PythonProjects
from engine.making.python_sources.wanted import NotWanted
from engine.making.uv.runs import LockFailed
from engine.runtimes.environments.execution import Executor
from engine.runtimes.runtime import Progress
from toolagent.contracts.sources import ScriptLanguage
from toolagent.contracts.task_specs import GithubDeploy
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
    """All that is built is data and files: nothing is registered."""

    def __init__(self, projects: PythonProjects, executor: Executor) -> None:
        self._projects, self._executor = projects, executor

    async def build(
        self, plan: ProgramBuild, spec: GithubDeploy, repository: Path, about: Described, place: Place, progress: Progress
    ) -> Built:
        """Packs launcher, package and lock into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        try:
            site = place.work.with_name("site")
            prepared = await self._projects.prepare(Order(repository, plan.project, (), site, place.work, about.tool_name), progress)
        except LockFailed as error:
            raise BuildFailed(error.message, error.told) from error
        except (NotWanted, ValueError, OSError) as error:
            raise BuildFailed(f"The project cannot be installed: {error}") from error
        installed = prepared.installed
        if installed is None or not installed.scripts:
            raise BuildFailed("The package that was built installs no console scripts.")
        progress(f"reading the parsers of {', '.join([*installed.scripts][:_TOLD])[:_LONGEST_TOLD]}")
        readable = Readable(installed.scripts, installed.site, prepared.environment, place.work.with_name("reading"))
        commands, left = await read_programs(readable, self._executor)
        commands, unfit = await asyncio.to_thread(fitting, commands)
        left = (*left, *unfit)
        if not commands:
            told = "; ".join(f"{one.command}: {one.reason}" for one in left[:_TOLD])
            raise BuildFailed(f"None of its programs can be a tool. {told}")
        if told := meaningless(commands, spec.operations, _names):
            raise BuildFailed(f"No command is meant: {told}")
        wanted, unwanted = chosen(commands, spec.operations, _names)
        try:
            files = await asyncio.to_thread(program_files, wanted, installed.scripts)
            await asyncio.to_thread(pack_project, files, prepared, place.folder)
        except (ValueError, OSError) as error:
            raise BuildFailed(f"The project cannot be packed: {error}") from error
        candidate = program_candidate(wanted, about, ScriptLanguage.PYTHON, spec.hosts)
        left_out = [LeftOut(one.command, one.reason) for one in left]
        left_out += [LeftOut(" ".join((one.program, *one.words)), "The task names others in `operations`.") for one in unwanted]
        ids = (entry.manifest.tool_id for entry in candidate.entries)
        return Built(candidate, dict.fromkeys(ids, place.folder), tuple(left_out), prepared.notes)


def program_files(commands: Sequence[Command], targets: Mapping[str, str]) -> Mapping[str, str]:
    """A script for each command, and what they share. Blocks."""
    scripts = {
        f"{name}.py": _SCRIPT.format(command=" ".join((command.program, *command.words)), name=name)
        for command, name in zip(commands, script_names(commands), strict=True)
    }
    return {"program.py": _CHILD.read_text(), "commands.json": commands_file(commands, targets), **scripts}


def _names(command: Command) -> tuple[str, ...]:
    words = (command.program, *command.words)
    return " ".join(words), " ".join(command.words), "_".join(command.words), command.words[-1] if command.words else command.program
