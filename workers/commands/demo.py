"""`python -m workers demo`: the main job from nothing, on free ports: pictures in, one stitched picture out; tools are made and called."""

import asyncio
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import httpx
from rich.console import Console

from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import StoredFile
from toolagent.contracts.tasks import TaskState, TaskView
from workers.commands.demo_making import deploy_a_repository, modelled, write_a_tool
from workers.failures import CannotRun
from workers.service import Running, running_service
from workers.settings.whole import Settings

_COLOURS = ((230, 80, 60), (60, 160, 90), (50, 110, 200))
_SIDE = 160
_POLL_S = 0.2
_ENDED = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)
_OUTPUT = Path("demo-output")


async def demo(settings: Settings) -> int:
    """Returns the exit code. Its state stays in `.demo`, so that a second run finds the tool's environment ready."""
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
        async with httpx.AsyncClient(base_url=service.api_url, timeout=60, trust_env=False) as http:
            picture = await _stitch(http, console)
            await _calculate(http, console)
            await write_a_tool(http, console)
            await deploy_a_repository(http, console)
        console.print(f"[bold]7[/bold] calls and tasks are workflows; short calls share one: {_workflows_of(service)}")
    console.print(f"[green]The stitched picture is at {picture}[/green]")
    return 0


async def _stitch(http: httpx.AsyncClient, console: Console) -> Path:
    console.print("[bold]2[/bold] uploading three generated pictures (POST /files)")
    uploads = [await _upload(http, f"picture-{number}.png", _png(colour)) for number, colour in enumerate(_COLOURS, 1)]
    console.print("[bold]3[/bold] calling image_stitcher (POST /run_tool): its environment is built on the first call")
    params = {"images": [upload.file_id for upload in uploads], "direction": "horizontal", "spacing": 12, "background": "white"}
    started = await http.post("/run_tool", json={"tool_id": "image_stitcher", "params": params, "mode": "async"})
    if not started.is_success:
        raise CannotRun(f"The call was not taken: {started.text}")
    result = await _follow(http, started.json()["task_id"], console)
    if result.status == "error" or not isinstance(result.result, dict):
        raise CannotRun(f"The call failed: {result.error.message if result.error else result.result}")
    picture = await http.get(f"/files/{result.result['image']}")
    picture.raise_for_status()
    return await asyncio.to_thread(_keep, picture.content)


async def _calculate(http: httpx.AsyncClient, console: Console) -> None:
    answer = await http.post("/run_tool", json={"tool_id": "calculator", "params": {"expression": "6 * 7"}})
    result = ToolResult.model_validate_json(answer.content)
    console.print(f"[bold]4[/bold] calling calculator, which has the answer at once: 6 * 7 = {result.result}")


async def _upload(http: httpx.AsyncClient, name: str, content: bytes) -> StoredFile:
    answer = await http.post("/files", files={"file": (name, content, "image/png")})
    answer.raise_for_status()
    return StoredFile.model_validate_json(answer.content)


async def _follow(http: httpx.AsyncClient, task_id: str, console: Console) -> ToolResult:
    """Show what the task says of itself until it has ended."""
    said: set[str] = set()
    with console.status(f"{task_id} …") as status:
        while True:
            view = TaskView.model_validate_json((await http.get(f"/tasks/{task_id}")).content)
            if view.progress and view.progress not in said:
                said.add(view.progress)
                status.update(view.progress)
                console.print(f"  … {view.progress}")
            if view.status in _ENDED and view.result is not None:
                console.print(f"  {view.status.value} in {view.result.execution_time:.2f} s of the tool's time")
                return view.result
            await asyncio.sleep(_POLL_S)


def _workflows_of(service: Running) -> str:
    address = f"{service.temporal.ui_url} (while this runs)" if service.temporal.ui_url else service.temporal.address
    return f"{address}; `make up` keeps it running"


def _keep(content: bytes) -> Path:
    _OUTPUT.mkdir(exist_ok=True)
    path = _OUTPUT / "stitched.png"
    path.write_bytes(content)
    return path.absolute()


def _png(colour: tuple[int, int, int]) -> bytes:
    """A square with a diagonal gradient from black to the colour, as PNG (8-bit RGB, no filter)."""
    rows = b"".join(b"\x00" + bytes(part * (x + y) // (2 * _SIDE) for x in range(_SIDE) for part in colour) for y in range(_SIDE))
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
