"""`python -m workers up | worker | api | im | demo | verify | export`."""

import asyncio
import pkgutil
import resource
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import uvloop
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from workers.collector import paused
from workers.failures import CannotRun
from workers.logs import configure_logging
from workers.settings.environment import environment
from workers.settings.whole import Settings, unread, unusable

Command: TypeAlias = Callable[[Settings], Awaitable[int]]

_MOST_PROCESSES, _LONGEST = 64, 9

_COMMANDS = {
    "up": "workers.commands.up:up",
    "worker": "workers.commands.up:worker",
    "im": "workers.commands.up:im",
    "demo": "workers.commands.demo:demo",
    "verify": "workers.commands.verify:verify",
}
"""The commands are loaded on demand: loading all takes seconds, and wrong settings are reported before."""

_USAGE = """usage: python -m workers up | worker | api [--processes N] | im | demo | verify
       python -m workers export [folder] [--force]"""
_HELP = f"""{_USAGE}

  up      run everything until Ctrl-C: embedded Temporal, workers, HTTP API
  worker  run a host alone: workflows and tools
  api     run the HTTP API alone, beside workers; --processes N runs N of them
          behind one port, on PostgreSQL
  im      be a contact of an IM server (TOOL_AGENT_IM_URL) and nothing else, beside workers
  demo    show the main job from nothing, on free ports: pictures in, one stitched picture out
  verify  look whether database, files and archives are what they should be; changes nothing
  export  write the catalog files from the database into a folder (catalog-export)

worker, api and im meet at one Temporal server (TOOL_AGENT_TEMPORAL_ADDRESS) and one
database (TOOL_AGENT_DATABASE_URL).

Settings come from the environment (TOOL_AGENT_…); they are described in docs/settings.md."""

_ENOUGH = 65_536


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 fine, 1 something went wrong, 2 wrong usage or settings."""
    console = Console(stderr=True)
    if any(argument in {"-h", "--help"} for argument in arguments):
        Console().print(_HELP, markup=False, highlight=False)
        return 0
    if not arguments or (arguments[0] not in ("api", "export") and (len(arguments) != 1 or arguments[0] not in _COMMANDS)):
        console.print(_USAGE, markup=False)
        return 2
    settings = _settings(console)
    if settings is None:
        return 2
    with paused():
        command = command_of(arguments)
    if command is None:
        console.print(_USAGE, markup=False)
        return 2
    configure_logging(settings.log.log_level, settings.log.log_format)
    allow_many()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(command, settings))
    except CannotRun as problem:
        console.print(str(problem), style="red", markup=False)
        return 1


def _settings(console: Console) -> Settings | None:
    """The settings; None, and a message, if one is invalid."""
    try:
        settings = Settings()
    except (SettingsError, ValidationError):
        for problem in unusable():
            console.print(problem, style="red", markup=False)
        return None
    for warning in unread(environment()):
        console.print(warning, style="yellow", markup=False, soft_wrap=True)
    return settings


def command_of(arguments: list[str]) -> Command | None:
    """The command; None for wrong arguments."""
    match arguments:
        case ["api"]:
            return pkgutil.resolve_name("workers.commands.up:api")
        case ["api", "--processes", number] if number.isdecimal() and len(number) < _LONGEST and 1 <= int(number) <= _MOST_PROCESSES:
            several = partial(pkgutil.resolve_name("workers.commands.doors:doors"), processes=int(number))
            return several if int(number) > 1 else command_of(["api"])
        case ["api", *_]:
            return None
        case ["export", *rest]:
            return pkgutil.resolve_name("workers.commands.export:export_command")(rest)
        case _:
            return pkgutil.resolve_name(_COMMANDS[arguments[0]])


async def _run(command: Command, settings: Settings) -> int:
    return await command(settings)


def allow_many() -> None:
    """Raise the limit of open files to the hard limit, or 65,536. With 1,024, as in shells, a thousand callers would block the service."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(_ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
