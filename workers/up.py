"""`python -m workers up`: the service until Ctrl-C."""

import asyncio
import signal

import structlog
from rich.console import Console
from rich.table import Table

from workers.service import Service, running_service
from workers.settings import Settings

__all__ = ["up"]

_log = structlog.get_logger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def up(settings: Settings) -> int:
    """Run until a signal comes or a worker ends by itself. Returns the exit code. Raises CannotRun."""
    console = Console(stderr=True)
    console.print("[bold]Tool Agent[/bold] is starting …")
    asked_to_stop = asyncio.Event()
    _stop_on_signals(asked_to_stop)
    async with running_service(settings) as service:
        console.print(_addresses(service))
        for fault in service.faults:
            console.print(f"catalog: {fault.file} {fault.field}: {fault.reason}", style="yellow", markup=False)
        broken = await _wait(asked_to_stop, service)
        if broken is None:
            console.print("Stopping: running calls are given a moment …")
        else:
            _log.error("worker_ended", cause=broken)
            console.print(f"A worker ended ({broken}); stopping.", style="red", markup=False)
    console.print("Stopped.")
    return 0 if broken is None else 1


def _stop_on_signals(asked_to_stop: asyncio.Event) -> None:
    """The first signal asks; a second one does what it does anywhere, and the guardian ends what is left."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        asked_to_stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, ask)


async def _wait(asked_to_stop: asyncio.Event, service: Service) -> str | None:
    """Why a worker ended although nobody asked; None when somebody asked."""
    stop = asyncio.create_task(asked_to_stop.wait())
    ended = asyncio.create_task(service.workers.ended())
    await asyncio.wait((stop, ended), return_when=asyncio.FIRST_COMPLETED)
    cause = _cause(ended) if ended.done() else None
    for task in (stop, ended):
        task.cancel()
    return None if asked_to_stop.is_set() else cause


def _cause(ended: asyncio.Task[None]) -> str:
    error = None if ended.cancelled() else ended.exception()
    return f"{type(error).__name__}: {error}" if error else "without saying why"


def _addresses(service: Service) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row("API", service.api_url)
    table.add_row("docs", f"{service.api_url}/docs")
    table.add_row("Temporal", service.temporal_address)
    if service.temporal_ui_url:
        table.add_row("Temporal UI", service.temporal_ui_url)
    table.add_row("state", str(service.state.root))
    table.add_row("", "[green]ready[/green] (Ctrl-C stops it)")
    return table
