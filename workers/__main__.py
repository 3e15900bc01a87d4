"""`python -m workers up | demo`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import uvloop
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from workers.demo import demo
from workers.failures import CannotRun
from workers.logs import configure_logging
from workers.settings import Settings
from workers.up import up

__all__ = ["main"]

_COMMANDS: dict[str, Callable[[Settings], Awaitable[int]]] = {"up": up, "demo": demo}

_USAGE = "usage: python -m workers up | demo"
_HELP = f"""{_USAGE}

  up    run the service until Ctrl-C: embedded Temporal, workers, HTTP API
  demo  show the main job from nothing, on free ports: pictures in, one stitched picture out

Settings come from the environment (TOOL_AGENT_…); they are described in docs/settings.md."""


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 fine, 1 something went wrong, 2 wrong usage or settings."""
    console = Console(stderr=True)
    command = _COMMANDS.get(arguments[0]) if len(arguments) == 1 else None
    if any(argument in {"-h", "--help"} for argument in arguments):
        Console().print(_HELP, markup=False, highlight=False)
        return 0
    if command is None:
        console.print(_USAGE, markup=False)
        return 2
    try:
        settings = Settings()
    except SettingsError as error:
        console.print(f"{error}: {error.__cause__}", style="red", markup=False)
        return 2
    except ValidationError as error:
        for issue in error.errors(include_url=False, include_input=False):
            name = "_".join(map(str, issue["loc"])).upper()
            console.print(f"TOOL_AGENT_{name}: {issue['msg']}", style="red", markup=False)
        return 2
    configure_logging()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(command, settings))
    except CannotRun as problem:
        console.print(str(problem), style="red", markup=False)
        return 1


async def _run(command: Callable[[Settings], Awaitable[int]], settings: Settings) -> int:
    return await command(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
