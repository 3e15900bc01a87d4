"""`python -m workers up | demo`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import uvloop
from pydantic import ValidationError
from rich.console import Console

from workers.demo import demo
from workers.failures import CannotRun
from workers.logs import configure_logging
from workers.settings import Settings
from workers.up import up

__all__ = ["main"]

_COMMANDS: dict[str, Callable[[Settings], Awaitable[int]]] = {"up": up, "demo": demo}


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 fine, 1 something went wrong, 2 wrong usage or settings."""
    console = Console(stderr=True)
    command = _COMMANDS.get(arguments[0]) if len(arguments) == 1 else None
    if command is None:
        console.print("usage: python -m workers up | demo", markup=False)
        return 2
    try:
        settings = Settings()
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
