"""`python -m workers demo`: stitches pictures, and makes and calls tools, from nothing and on free ports."""

import asyncio
import struct
import time
import zlib
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console

from engine.disk.temporary import temporary_folder
from toolagent.client.http import ServiceError, ToolAgentHttp
from toolagent.contracts.calls import CallMode, ToolCall, ToolResult
from toolagent.contracts.tasks import TaskState
from workers.commands.demo_making import call, deploy_a_repository, modelled, write_a_tool
from workers.failures import CannotRun, cannot_run_on
from workers.service import Running, running_service
from workers.settings.whole import Settings

_COLOURS = ((230, 80, 60), (60, 160, 90), (50, 110, 200))
_SIDE = 160
_POLL_S = 0.2
_ENDED = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)
_OUTPUT = Path("demo-output")


async def demo(settings: Settings) -> int:
    """Returns the exit code. The state stays in `.demo`, so that a second run finds the tool's environment ready."""
    console = Console(stderr=True)
    own = replace(
        settings,
        state=settings.state.model_copy(update={"state_dir": Path(".demo")}),
        front=settings.front.model_copy(update={"api_key": None, "fastapi_host": "127.0.0.1", "fastapi_port": 0}),
        temporal=settings.temporal.model_copy(update={"temporal_port": 0, "temporal_ui_port": 0}),
    )
    console.print("[bold]1[/bold] starting the service: embedded Temporal, workers, HTTP API …")
    async with modelled(own, console) as own, running_service(own) as service:
        console.print(f"  API {service.api_url}, Temporal UI {service.temporal.ui_url or service.temporal.address}")
        with ToolAgentHttp(service.api_url, timeout_s=60) as http:  # closed by Ctrl-C, which ends the thread
            picture = await asyncio.to_thread(_shown, http, console)
        console.print(f"[bold]7[/bold] calls and tasks are workflows; short calls share one: {_workflows_of(service)}")
    console.print(f"[green]The stitched picture is at {picture}[/green]")
    return 0


def _shown(http: ToolAgentHttp, console: Console) -> Path:
    """Calls and makes tools as a client of the service. Returns the path of the picture. Raises CannotRun."""
    with cannot_run_on(ServiceError):
        picture = _stitch(http, console)
        calculated = call(http, "calculator", {"expression": "6 * 7"})
        console.print(f"[bold]4[/bold] calling calculator, which has the answer at once: 6 * 7 = {calculated}")
        write_a_tool(http, console)
        deploy_a_repository(http, console)
        return picture


def _stitch(http: ToolAgentHttp, console: Console) -> Path:
    console.print("[bold]2[/bold] uploading three generated pictures (POST /files)")
    with temporary_folder("tool-agent-demo-") as folder:
        uploads = [_upload(http, folder / f"picture-{number}.png", colour) for number, colour in enumerate(_COLOURS, 1)]
    console.print("[bold]3[/bold] calling image_stitcher (POST /run_tool): its environment is built on the first call")
    params: dict[str, JsonValue] = {"images": [*uploads], "direction": "horizontal", "spacing": 12, "background": "white"}
    started = http.run(ToolCall(tool_id="image_stitcher", params=params, mode=CallMode.ASYNC))
    if isinstance(started, ToolResult):
        raise CannotRun(f"The call was not taken: {started.model_dump_json()}")
    result = _follow(http, started.task_id, console)
    if result.status == "error" or not isinstance(result.result, dict):
        raise CannotRun(f"The call failed: {result.error.message if result.error else result.result}")
    _OUTPUT.mkdir(exist_ok=True)
    return http.save(str(result.result["image"]), _OUTPUT / "stitched.png").absolute()


def _upload(http: ToolAgentHttp, path: Path, colour: tuple[int, int, int]) -> str:
    path.write_bytes(_png(colour))
    return http.upload(path).file_id


def _follow(http: ToolAgentHttp, task_id: str, console: Console) -> ToolResult:
    """Print the progress of the task until it ends."""
    said: set[str] = set()
    with console.status(f"{task_id} …") as status:
        while True:
            view = http.task(task_id)
            if view.progress and view.progress not in said:
                said.add(view.progress)
                status.update(view.progress)
                console.print(f"  … {view.progress}")
            if view.status in _ENDED and view.result is not None:
                console.print(f"  {view.status.value} in {view.result.execution_time:.2f} s of the tool's time")
                return view.result
            time.sleep(_POLL_S)


def _workflows_of(service: Running) -> str:
    address = f"{service.temporal.ui_url} (while this runs)" if service.temporal.ui_url else service.temporal.address
    return f"{address}; `make up` keeps it running"


def _png(colour: tuple[int, int, int]) -> bytes:
    """A square with a diagonal gradient from black to the colour, as PNG (8-bit RGB, no filter)."""
    rows = b"".join(b"\x00" + bytes(part * (x + y) // (2 * _SIDE) for x in range(_SIDE) for part in colour) for y in range(_SIDE))
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
