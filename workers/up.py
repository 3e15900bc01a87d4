"""`python -m workers up`: the service until Ctrl-C."""

import asyncio
import signal

from rich.console import Console
from rich.table import Table

from workers.service import Service, running_service
from workers.settings import Settings

__all__ = ["up"]

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
            console.print(f"[yellow]catalog:[/yellow] {fault.file} {fault.field}: {fault.reason}", markup=True)
        broken = await _wait(asked_to_stop, service)
        console.print("Stopping: running calls are given a moment …" if not broken else "[red]A worker ended; stopping.[/red]")
    console.print("Stopped.")
    return 1 if broken else 0


def _stop_on_signals(asked_to_stop: asyncio.Event) -> None:
    """The first signal asks; a second one does what it does anywhere, and the guardian ends what is left."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        asked_to_stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, ask)


async def _wait(asked_to_stop: asyncio.Event, service: Service) -> bool:
    """True when a worker ended although nobody asked."""
    stop = asyncio.create_task(asked_to_stop.wait())
    ended = asyncio.create_task(service.workers.ended())
    await asyncio.wait((stop, ended), return_when=asyncio.FIRST_COMPLETED)
    for task in (stop, ended):
        task.cancel()
    return not asked_to_stop.is_set()


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
