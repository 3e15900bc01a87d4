"""Has the parsers of programs read, in the sandbox: they are other people's code."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.boxes import boxed
from engine.making.failures import LeftOut
from engine.making.programs.commands import Command, command_of_help, commands_of, fit_for_json
from engine.runtimes.environments.environments import Environment
from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.core.texts import well_formed

_CHILD = Path(__file__).parent / "inside" / "reader.py"
_MIB = 1024 * 1024
_LIMITS = SandboxLimits(memory_bytes=1024 * _MIB, processes=64, open_files=1024, output_bytes=_MIB, disk_bytes=64 * _MIB, wall_s=60)
_READ_S = 20.0
_MOST_BYTES = 4 * _MIB
_MOST_PROGRAMS = 20
_OUT = "described.json"
_AT_ONCE = 2
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")
_TARGET = re.compile(r"[\w.]{1,500}:[\w.]{1,500}|bin/[\w.+-]{1,100}|[\w.+-]{1,100}\.py")
_UNFIT = "A program is named with letters, digits and `._+-`, and is a function of a module, as in `package.module:function`, or a file."


@dataclass(frozen=True, slots=True)
class Readable:
    """Programs by name, `module:function` or a file, whose modules are in the folder `site` and run in that environment."""

    scripts: Mapping[str, str]
    site: Path
    environment: Environment
    work: Path


async def read_programs(programs: Readable, executor: Executor) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    """Their commands, and what becomes no tool. Raises ScriptFailure (`UnavailableError`)."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def read(number: int, name: str) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
        async with turn:
            return await _read(programs, executor, name, programs.work / f"read-{number}")

    # Both go into argument lists, and into scripts of ours.
    names = sorted(name for name, target in programs.scripts.items() if _NAME.fullmatch(name) and _TARGET.fullmatch(target))
    unfit = [LeftOut(well_formed(name)[:100], _UNFIT) for name in sorted(programs.scripts.keys() - set(names))]
    answers = await asyncio.gather(*(read(number, name) for number, name in enumerate(names[:_MOST_PROGRAMS])))
    more = [LeftOut(name, f"There are more than {_MOST_PROGRAMS} programs.") for name in names[_MOST_PROGRAMS:]]
    return tuple(one for found, _ in answers for one in found), (*(one for _, left in answers for one in left), *more, *unfit)


async def _read(programs: Readable, executor: Executor, name: str, work: Path) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    await asyncio.to_thread(_empty, work)
    try:
        done = await executor.run(_order(programs, executor, name, work))
        said = await asyncio.to_thread(_said, work / _OUT)
    finally:
        await asyncio.shield(asyncio.to_thread(discard, work))
    told = said if isinstance(said, dict) else {}
    if told.get("described") is not None:
        try:
            return commands_of(name, told["described"])
        except ValueError as error:
            return (), (LeftOut(name, str(error)),)
    return _by_help(name, done, told)


def _order(programs: Readable, executor: Executor, name: str, work: Path) -> Order:
    child = Path("/run/tool-agent-reader/reader.py")
    mounts = (
        *programs.environment.mounts,
        Mount(programs.site, programs.site),
        Mount(_CHILD, child),
        Mount(work, work, writable=True),
    )
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(work), "LANG": "C.UTF-8", "PYTHONPATH": str(programs.site), "COLUMNS": "100"}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "TERM": "dumb"}
    box = boxed(executor, "read-program", work, _LIMITS, mounts, variables)
    target = programs.scripts[name]
    told = target if ":" in target else str(programs.site / target)
    argv = (str(programs.environment.folder.python), str(child), name, told, str(work / _OUT))
    return Order(argv, box, _READ_S, work.with_name(f"{work.name}-log"))


def _by_help(name: str, done: Execution, told: Mapping[str, JsonValue]) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    fault = told.get("fault")
    if done.cut:
        return (), (LeftOut(name, "Asked for its help, it did not end, or said too much."),)
    command = None if fault else command_of_help(name, told.get("code"), done.stdout, done.stderr)
    if command is None:
        last = next((line.strip() for line in reversed(done.stderr.decode(errors="replace").splitlines()) if line.strip()), "")
        why = str(fault or last or "it said nothing")[:500]
        return (), (LeftOut(name, f"Its parser is none that can be read, and it does not answer `--help`: {why}"),)
    return (command,), ()


def _empty(work: Path) -> None:
    remove(work)
    work.mkdir(parents=True)
    work.chmod(0o777)


def _said(path: Path) -> JsonValue:
    """None for what is no JSON, or a link."""
    if path.is_symlink() or not path.is_file():
        return None
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    try:
        return fit_for_json(cast("JsonValue", json.loads(content))) if len(content) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        return None
