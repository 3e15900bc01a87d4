"""`python -m workers up | worker | api | im`: runs a process until Ctrl-C."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import structlog
from rich.console import Console
from rich.table import Table

from toolagent.validation.checkers import end_checks
from workers.collector import spare_what_stays
from workers.commands.stopping import stop_on_signals
from workers.service import Running, running_api, running_im_alone, running_service, running_worker
from workers.settings.whole import Settings

_log = structlog.stdlib.get_logger(__name__)


async def _run(title: str, start: Callable[[Settings], AbstractAsyncContextManager[Running]], settings: Settings) -> int:
    """Run until a signal comes or a part ends by itself. Returns the exit code. Raises CannotRun."""
    try:
        return await _running(title, start, settings)
    finally:
        # Otherwise the process would wait for its threads.
        end_checks()


up = partial(_run, "Tool Agent", running_service)
worker = partial(_run, "Tool Agent worker", running_worker)
api = partial(_run, "Tool Agent API", running_api)
im = partial(_run, "Tool Agent IM", running_im_alone)


async def _running(title: str, start: Callable[[Settings], AbstractAsyncContextManager[Running]], settings: Settings) -> int:
    console = Console(stderr=True)
    console.print(f"[bold]{title}[/bold] is starting …")
    asked_to_stop = asyncio.Event()
    stop_on_signals(asked_to_stop)
    async with start(settings) as running:
        spare_what_stays()
        console.print(_addresses(running))
        for fault in running.faults:
            console.print(f"catalog: {fault.file} {fault.field}: {fault.reason}", style="yellow", markup=False)
        broken = await _wait(asked_to_stop, running)
        # After the grace, checks end, so that calls end.
        asyncio.get_running_loop().call_later(settings.calls.shutdown_grace_s, end_checks)
        if broken is None:
            console.print("Stopping: running calls are given a moment … (Ctrl-C again ends at once)")
        else:
            _log.error("part_ended", cause=broken)
            console.print(f"A part of it ended ({broken}); stopping.", style="red", markup=False)
    console.print("Stopped.")
    return 0 if broken is None else 1


async def _wait(asked_to_stop: asyncio.Event, running: Running) -> str | None:
    """Why a part ended without being asked to; None if it was asked to."""
    stop = asyncio.create_task(asked_to_stop.wait())
    ended = asyncio.ensure_future(running.ended())
    await asyncio.wait((stop, ended), return_when=asyncio.FIRST_COMPLETED)
    cause = _cause(ended) if ended.done() else None
    for task in (stop, ended):
        task.cancel()
    return None if asked_to_stop.is_set() else cause


def _cause(ended: asyncio.Future[None]) -> str:
    error = None if ended.cancelled() else ended.exception()
    return f"{type(error).__name__}: {error}" if error else "without saying why"


def _addresses(running: Running) -> Table:
    table = Table.grid(padding=(0, 2))
    if running.api_url:
        table.add_row("API", running.api_url)
        table.add_row("docs", f"{running.api_url}/docs")
    table.add_row("Temporal", running.temporal.address)
    if running.temporal.ui_url:
        table.add_row("Temporal UI", running.temporal.ui_url)
    if running.im:
        table.add_row("IM", running.im)
    if running.state.host:
        table.add_row("host", running.state.host)
    table.add_row("state", str(running.state.root))
    table.add_row("", "[green]ready[/green] (Ctrl-C stops it)")
    return table
