"""Runs a model's commands in a project, keeps their whole output, and shows a part."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from engine.making.workbench.finishing import finished
from engine.making.workbench.places import LOGS, WORK, Area, Place, environment_of
from engine.making.workbench.refusal import BenchRefused
from engine.making.workbench.runs import UV, BenchParts, Run, too_much
from engine.runtimes.environments.execution import Execution
from engine.runtimes.process.box import Mount
from engine.runtimes.process.processes import Process, exit_text
from toolagent.core.texts import well_formed
from toolagent_service.agents.trimming import trimmed

_SHELL = "/bin/sh"
_LONGEST_STREAM = 8_000
_TIMED_OUT = 124
_BACKGROUND = "background"
_MOST_AT_ONCE = 4
"""Most background commands at once, because the limits of a sandbox are for each command."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The outputs for the model. `note` says why the command was ended, if it was."""

    exit_code: int
    stdout: str
    stderr: str
    note: str = ""


class BenchCommands:
    """The commands of one task. `root` has its files and `logs`, `accounts` is for the launcher's accounts of runs."""

    def __init__(self, parts: BenchParts, root: Path, accounts: Path) -> None:
        self._parts, self._root, self._accounts = parts, root, accounts
        self._running: dict[str, Process] = {}
        self._starting = asyncio.Lock()

    async def run(self, project: str, environment: Path, command: str, wall_s: float, log: str) -> Ran:
        """Runs the command by a shell in the sandbox. Raises ScriptFailure."""
        done = await self._parts.run(project, self._run_of(project, environment, command, wall_s), self._accounts / "command")
        stdout, stderr = await finished(outputs_shown, self._root, log, done.stdout, done.stderr)
        return Ran(_TIMED_OUT if done.cut == "time" else done.code, stdout, stderr, _note(done, wall_s))

    async def start(self, project: str, environment: Path, command: str, wall_s: float, log: str) -> str:
        """Starts a background command, which ends with the task; returns the log for `read_file`. Raises BenchRefused, ScriptFailure."""
        name = f"{_BACKGROUND}-{log}.log"
        async with self._starting:
            if name not in self._running:
                self._require_few()
                run = self._run_of(project, environment, f"exec 2>&1\n{command}", wall_s)
                self._running[name] = await self._parts.start(project, run, self._root / Area.LOGS / name)
        return str(LOGS / name)

    def state_of(self, place: Place) -> str:
        """The state of the background command that wrote this log; empty for other logs."""
        if place.area is not Area.LOGS or not place.parts or not place.parts[-1].startswith(_BACKGROUND):
            return ""
        process = self._running.get(place.parts[-1])
        if process is None:
            return "[This command does not run any more: the service was restarted meanwhile. Start it again if it is needed.]"
        return "[This command has ended.]" if process.has_ended else "[This command is still running.]"

    async def end(self) -> None:
        """Ends all background commands."""
        for process in [*self._running.values()]:
            await process.kill()
        self._running.clear()

    def _require_few(self) -> None:
        if sum(not process.has_ended for process in self._running.values()) >= _MOST_AT_ONCE:
            raise BenchRefused(
                f"{_MOST_AT_ONCE} commands of this task run in the background already, which is the most. They end with their time; "
                "give each a short timeout, or run several things in one command."
            )

    def _run_of(self, project: str, environment: Path, command: str, wall_s: float) -> Run:
        seen, folder = environment_of(project), Path(WORK / project)
        variables = {
            "PATH": f"{seen}/bin:{UV.parent}:/usr/bin:/bin",
            "VIRTUAL_ENV": str(seen),
            "UV_PROJECT_ENVIRONMENT": str(seen),
            "UV_NO_SYNC": "1",
            "UV_OFFLINE": "1",
        }
        mounts = (
            Mount(self._root / Area.WORK, Path(WORK), writable=True),
            Mount(self._root / Area.LOGS, Path(LOGS)),
            Mount(environment, Path(seen)),
        )
        return Run((_SHELL, "-c", command), folder, wall_s, mounts, variables)


def outputs_shown(root: Path, log: str, stdout: bytes, stderr: bytes) -> tuple[str, str]:
    """Both outputs, cut for the model. A long one goes to a log, and its end says how to read on. Blocks."""
    return _shown(root, f"{log}.stdout", stdout), _shown(root, f"{log}.stderr", stderr)


def _shown(root: Path, name: str, content: bytes) -> str:
    text = well_formed(content.decode(errors="replace"))
    if len(text) <= _LONGEST_STREAM:
        return text
    (root / Area.LOGS / name).write_text(text, encoding="utf-8")
    return trimmed(text, str(LOGS / name), _LONGEST_STREAM)


def _note(done: Execution, wall_s: float) -> str:
    match done.cut:
        case "time":
            return f"Ended after {wall_s:g} s, as it had not ended by itself. Give more with timeout, or start it with is_background."
        case "stdout" | "stderr":
            return f"Ended, as it wrote too much on {done.cut}."
        case None:
            pass
    return too_much(done.ending) or (f"It was {exit_text(-(done.code - 128))}." if done.code > 128 else "")
