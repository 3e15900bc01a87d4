"""Builds tools from the programs that a Node.js project installs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from engine.making.boxes import boxed, last_line
from engine.making.building.builds import Built, Job, Place
from engine.making.failures import NOT_NAMED, BuildFailed, LeftOut, failing
from engine.making.node_projects.preparing import PACKAGE, NodePrepared, NodeProjects
from engine.making.programs.commands import Command, command_of_help
from engine.making.programs.tools import commands_file, program_candidate, script_names
from engine.making.repositories.packaging import open_to_all
from engine.runtimes.environments.execution import Executor, Order
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.contracts.sources import ScriptLanguage
from toolagent_service.contracts.plans import ProgramBuild
from toolagent_service.making.wildcards import chosen

_CHILD = Path(__file__).parents[1] / "programs" / "inside" / "program.mjs"
_SCRIPT = '// Runs `{command}`. Written by Tool Agent.\nimport {{ run }} from "./program.mjs";\n\nrun({name});\n'
_MIB = 1024 * 1024
_LIMITS = SandboxLimits(memory_bytes=2048 * _MIB, processes=128, output_bytes=_MIB, disk_bytes=64 * _MIB, wall_s=60)
_READ_S = 20.0
_TOLD = 5
_SEEN = Path("/run/tool-agent-reader")


class NodeProgramBuilder:
    """Makes data and files, and registers nothing."""

    def __init__(self, projects: NodeProjects, executor: Executor, programs: Programs) -> None:
        self._projects, self._executor, self._programs = projects, executor, programs

    async def build(self, plan: ProgramBuild, job: Job) -> Built:
        """Packs launcher, package and lock into `place.folder`. Raises BuildFailed, ScriptFailure (`UnavailableError`)."""
        prepared = await self._projects.prepare(plan.project, job)
        if not prepared.programs:
            raise BuildFailed(f"The package that was packed installs no programs. {'; '.join(map(str, prepared.left_out[:_TOLD]))}".strip())
        job.progress(f"asking {', '.join(prepared.programs)} for help")
        found = [await self._read(name, file, job.place, prepared) for name, file in prepared.programs.items()]
        left = [one for one in found if isinstance(one, LeftOut)]
        wanted, unwanted = chosen([one for one in found if isinstance(one, Command)], job.about.operations, lambda one: (one.program,))
        if not wanted:
            raise BuildFailed(f"None of its programs can be a tool. {'; '.join(map(str, left[:_TOLD]))}".strip())
        await asyncio.to_thread(_written, wanted, prepared.programs, job.place.folder)
        with failing("What its programs say of themselves makes no tools"):
            candidate = program_candidate(wanted, job.about, ScriptLanguage.NODEJS, job.hosts)
        left_out = (*prepared.left_out, *left, *(LeftOut(one.program, NOT_NAMED) for one in unwanted))
        return job.built(candidate, left_out, prepared.notes)

    async def _read(self, name: str, file: str, place: Place, prepared: NodePrepared) -> Command | LeftOut:
        """A command with the program's help and any arguments, because there are too many parsers to read."""
        node = self._programs.require("Node.js", self._programs.node)
        mounts = [*node.mounts, Mount(place.folder / PACKAGE, _SEEN / PACKAGE)]
        mounts += [Mount(prepared.environment.modules, _SEEN / "node_modules")] if prepared.environment.modules else []
        variables = {"PATH": f"{node.file.parent}:/usr/bin:/bin", "HOME": "/tmp", "NO_COLOR": "1", "CI": "true"}  # noqa: S108 - the sandbox's
        box = boxed(self._executor, "read-program", _SEEN / PACKAGE, _LIMITS, mounts, variables)
        argv = (str(node.file), str(_SEEN / file), "--help")
        done = await self._executor.run(Order(argv, box, _READ_S, place.work.with_name("read-log")))
        command = None if done.cut else command_of_help(name, done.code, done.stdout, done.stderr)
        why = last_line(done)[:300] or "it said nothing, or did not end"
        return command or LeftOut(name, f"It does not answer `--help`: {why}")


def _written(commands: tuple[Command, ...], targets: Mapping[str, str], folder: Path) -> None:
    (folder / "program.mjs").write_text(_CHILD.read_text())
    (folder / "commands.json").write_text(commands_file(commands, targets))
    for command, name in zip(commands, script_names(commands), strict=True):
        (folder / f"{name}.mjs").write_text(_SCRIPT.format(command=command.program, name=repr(name).replace("'", '"')))
    open_to_all(folder)
