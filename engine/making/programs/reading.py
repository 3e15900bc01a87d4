"""Runs the reader of programs' parsers in the sandbox, because the programs are untrusted code."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

from pydantic import JsonValue

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.boxes import boxed, last_line, left_in
from engine.making.failures import LeftOut
from engine.making.json_values import Part, part
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
_TARGET = re.compile(r"[\w.]{1,500}:[\w.]{1,500}|bin/[\w.+-]{1,100}|(?:(?!\.)[\w.+-]{1,100}/){0,20}[\w.+-]{1,100}\.py")
_UNFIT = "A program is named with letters, digits and `._+-`, and is a function of a module, as in `package.module:function`, or a file."


@dataclass(frozen=True, slots=True)
class Readable:
    """Programs by name (`module:function` or a file). Their modules are in the folder `site`."""

    scripts: Mapping[str, str]
    site: Path
    environment: Environment
    work: Path


_Commands: TypeAlias = tuple[tuple[Command, ...], tuple[LeftOut, ...]]


async def read_programs(programs: Readable, executor: Executor) -> _Commands:
    """The commands, and programs that cannot be tools. Raises ScriptFailure (`UnavailableError`)."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def read(number: int, name: str) -> _Commands:
        async with turn:
            return await _read(programs, executor, name, programs.work / f"read-{number}")

    # Names and targets go into argument lists and into our scripts.
    names = sorted(name for name, target in programs.scripts.items() if _NAME.fullmatch(name) and _TARGET.fullmatch(target))
    unfit = [LeftOut(well_formed(name)[:100], _UNFIT) for name in sorted(programs.scripts.keys() - set(names))]
    answers = await asyncio.gather(*(read(number, name) for number, name in enumerate(names[:_MOST_PROGRAMS])))
    more = [LeftOut(name, f"There are more than {_MOST_PROGRAMS} programs.") for name in names[_MOST_PROGRAMS:]]
    return tuple(one for found, _ in answers for one in found), (*(one for _, left in answers for one in left), *more, *unfit)


async def _read(programs: Readable, executor: Executor, name: str, work: Path) -> _Commands:
    await asyncio.to_thread(_empty, work)
    try:
        done = await executor.run(_order(programs, executor, name, work))
        told = await asyncio.to_thread(_said, work / _OUT)
    finally:
        await asyncio.shield(asyncio.to_thread(discard, work))
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
    variables = {"HOME": str(work), "PYTHONPATH": str(programs.site), "COLUMNS": "100"}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "TERM": "dumb"}
    box = boxed(executor, "read-program", work, _LIMITS, mounts, variables)
    target = programs.scripts[name]
    told = target if ":" in target else str(programs.site / target)
    argv = (str(programs.environment.folder.python), str(child), name, told, str(work / _OUT))
    return Order(argv, box, _READ_S, work.with_name(f"{work.name}-log"))


def _by_help(name: str, done: Execution, told: Part) -> _Commands:
    fault = told.get("fault")
    if done.cut:
        return (), (LeftOut(name, "Asked for its help, it did not end, or said too much."),)
    if not fault and (command := command_of_help(name, told.get("code"), done.stdout, done.stderr)):
        return (command,), ()
    why = str(fault or last_line(done) or "it said nothing")[:500]
    return (), (LeftOut(name, f"Its parser is none that can be read, and it does not answer `--help`: {why}"),)


def _empty(work: Path) -> None:
    remove(work)
    work.mkdir(parents=True)
    work.chmod(0o777)


def _said(path: Path) -> Part:
    """Empty if the file holds no JSON object, or is a link."""
    content = left_in(path, _MOST_BYTES)
    try:
        return part(fit_for_json(cast("JsonValue", json.loads(content)))) if len(content) <= _MOST_BYTES else {}
    except (ValueError, RecursionError):
        return {}
