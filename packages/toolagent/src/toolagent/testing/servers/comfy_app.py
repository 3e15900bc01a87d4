"""The ComfyUI of one rented server: its HTTP API and its WebSocket.

Pictures pass through unchanged.
"""

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from toolagent.testing.servers.comfy_graph import KINDS, Graph, InvalidPrompt, checked
from toolagent.testing.servers.runcomfy_ledger import FaultKind

__all__ = ["ComfyServer"]

_STEPS = 3
_MODELS: Mapping[str, tuple[str, ...]] = {"checkpoints": ("v1-5-pruned-emaonly.ckpt",), "loras": ()}


class _Forgotten(Exception):
    """ComfyUI was restarted."""


class ComfyServer:
    """Each node takes `node_s` seconds. `vanish` is called when a fault makes the server disappear."""

    def __init__(self, node_s: float, vanish: Callable[[], None]) -> None:
        self._node_s, self._vanish = node_s, vanish
        self._files: dict[str, dict[str, bytes]] = {"input": {}, "output": {}, "temp": {}}
        self._history: dict[str, JsonValue] = {}
        self._sockets: defaultdict[str, set[WebSocket]] = defaultdict(set)
        self._turn = asyncio.Lock()
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._number = 0

    async def upload(self, request: Request) -> Response:
        async with request.form() as form:
            image, subfolder, folder = form.get("image"), str(form.get("subfolder", "")), str(form.get("type", "input"))
            if not isinstance(image, UploadFile) or not image.filename or folder not in self._files:
                return Response(status_code=400)
            path = PurePosixPath(subfolder, image.filename)
            if path.is_absolute() or ".." in path.parts:
                return Response(status_code=400)
            name = str(path) if form.get("overwrite") in {"true", "1"} else self._free(folder, path)
            self._files[folder][name] = await image.read()
        return JSONResponse({"name": PurePosixPath(name).name, "subfolder": subfolder, "type": folder})

    async def prompt(self, request: Request, fault: FaultKind | None) -> Response:
        body = await request.json()
        try:
            graph = checked(body.get("prompt"), self._known())
        except InvalidPrompt as error:
            return JSONResponse(error.answer, 400)
        prompt_id, self._number = str(uuid.uuid4()), self._number + 1
        running = asyncio.create_task(self._run(prompt_id, graph, str(body.get("client_id", "")), fault))
        self._runs[prompt_id] = running
        running.add_done_callback(lambda _: self._runs.pop(prompt_id, None))
        return JSONResponse({"prompt_id": prompt_id, "number": self._number, "node_errors": graph.errors})

    async def history(self, request: Request) -> Response:
        prompt_id = str(request.path_params["prompt_id"])
        return JSONResponse({prompt_id: self._history[prompt_id]} if prompt_id in self._history else {})

    async def view(self, request: Request) -> Response:
        asked = request.query_params
        path = PurePosixPath(asked.get("subfolder", ""), asked.get("filename", ""))
        content = self._files.get(asked.get("type", "output"), {}).get(str(path))
        return Response(status_code=404) if content is None else Response(content, media_type="image/png")

    async def models(self, request: Request) -> Response:
        folder = str(request.path_params["folder"])
        return JSONResponse(sorted(self._known()[folder])) if folder in _MODELS else Response(status_code=404)

    async def object_info(self, request: Request) -> Response:
        kind = str(request.path_params["kind"])
        return JSONResponse({kind: KINDS[kind].shown()} if kind in KINDS else {})

    async def queue(self, _: Request) -> Response:
        """The first prompt runs, the others wait."""
        every: list[JsonValue] = [[number, prompt_id, {}, {}, []] for number, prompt_id in enumerate(self._runs)]
        return JSONResponse({"queue_running": every[:1], "queue_pending": every[1:]})

    async def dequeue(self, request: Request) -> Response:
        """Ends waiting prompts. `interrupt` ends the running one."""
        for prompt_id in (await request.json()).get("delete", ()):
            if prompt_id in [*self._runs][1:]:
                self._runs[prompt_id].cancel()
        return Response()

    async def interrupt(self, request: Request) -> Response:
        """Ends the prompt that the body names, or all."""
        body: dict[str, JsonValue] = await request.json() if await request.body() else {}
        for prompt_id, running in list(self._runs.items()):
            if body.get("prompt_id") in {None, prompt_id}:
                running.cancel()
        return Response()

    async def messages(self, socket: WebSocket) -> None:
        await socket.accept()
        client = socket.query_params.get("clientId", uuid.uuid4().hex)
        self._sockets[client].add(socket)
        try:
            status = {"exec_info": {"queue_remaining": len(self._runs)}}
            await socket.send_json({"type": "status", "data": {"status": status, "sid": client}})
            while True:
                await socket.receive()
        except (WebSocketDisconnect, RuntimeError):
            pass  # the client left, or was dropped
        finally:
            self._sockets[client].discard(socket)

    def close(self) -> None:
        for running in self._runs.values():
            running.cancel()

    async def drop(self) -> None:
        """Closes every WebSocket."""
        for socket in [one for every in self._sockets.values() for one in every]:
            await socket.close(1011)

    def _known(self) -> dict[str, set[str]]:
        """The files that a node may name, by folder. An uploaded model is named without its folder."""
        inputs = self._files["input"]
        models = {
            folder: {*shipped, *(name.removeprefix(f"{folder}/") for name in inputs if name.startswith(f"{folder}/"))}
            for folder, shipped in _MODELS.items()
        }
        return {"input": {*inputs}, **models}

    def _free(self, folder: str, path: PurePosixPath) -> str:
        name, number = str(path), 0
        while name in self._files[folder]:
            number += 1
            name = str(path.with_name(f"{path.stem} ({number}){path.suffix}"))
        return name

    async def _run(self, prompt_id: str, graph: Graph, client: str, fault: FaultKind | None) -> None:
        async def tell(kind: str, **data: JsonValue) -> None:
            for socket in tuple(self._sockets[client]):
                try:
                    await socket.send_json({"type": kind, "data": {"prompt_id": prompt_id, **data}})
                except (RuntimeError, WebSocketDisconnect):
                    self._sockets[client].discard(socket)

        try:
            async with self._turn:
                await tell("execution_start", timestamp=int(time.time() * 1000))
                await tell("execution_cached", nodes=[])
                outputs = await self._nodes(graph, tell, fault)
        except _Forgotten:
            return
        except asyncio.CancelledError:
            self._keep(prompt_id, "error", {}, ["execution_interrupted", {"prompt_id": prompt_id}])
            await tell("execution_interrupted", node_id=None, node_type=None, executed=[])
            return
        if outputs is None:
            wrong: dict[str, JsonValue] = {
                "node_id": graph.order[0],
                "node_type": graph.kind(graph.order[0]),
                "exception_type": "RuntimeError",
                "exception_message": "Allocation on device failed: out of memory",
            }
            self._keep(prompt_id, "error", {}, ["execution_error", {"prompt_id": prompt_id, **wrong}])
            await tell("execution_error", **wrong)
            return
        self._keep(prompt_id, "success", outputs, ["execution_success", {"prompt_id": prompt_id}])
        await tell("execution_success", timestamp=int(time.time() * 1000))
        await tell("executing", node=None)

    async def _nodes(self, graph: Graph, tell: Callable[..., Awaitable[None]], fault: FaultKind | None) -> dict[str, JsonValue] | None:
        """The outputs of the nodes; None if one failed."""
        made: dict[str, bytes] = {}
        outputs: dict[str, JsonValue] = {}
        for node in graph.order:
            await tell("executing", node=node, display_node=node)
            for step in range(1, _STEPS + 1):
                await asyncio.sleep(self._node_s / _STEPS)
                await tell("progress", value=step, max=_STEPS, node=node)
            if fault == "run_error":
                return None
            if fault == "vanish":
                self._vanish()
            if fault in {"vanish", "ws_drop", "forget"}:
                await self.drop()
            if fault == "forget":
                raise _Forgotten
            if (output := self._node(graph, node, made)) is not None:
                outputs[node] = output
                await tell("executed", node=node, display_node=node, output=output)
        return outputs

    def _node(self, graph: Graph, node: str, made: dict[str, bytes]) -> JsonValue:
        kind, inputs = graph.kind(node), graph.inputs(node)
        if kind == "LoadImage":
            made[node] = self._files["input"][inputs["image"]]
            return None
        if kind not in {"SaveImage", "PreviewImage"}:
            return None
        folder = "output" if kind == "SaveImage" else "temp"
        path = PurePosixPath(f"{inputs.get('filename_prefix', 'ComfyUI')}_{len(self._files[folder]) + 1:05}_.png")
        self._files[folder][str(path)] = made[inputs["images"][0]]
        subfolder = "" if path.parent == PurePosixPath() else str(path.parent)
        return {"images": [{"filename": path.name, "subfolder": subfolder, "type": folder}]}

    def _keep(self, prompt_id: str, status: str, outputs: dict[str, JsonValue], last: JsonValue) -> None:
        told: dict[str, JsonValue] = {"status_str": status, "completed": status == "success", "messages": [last]}
        self._history[prompt_id] = {"prompt": [], "outputs": outputs, "status": told, "meta": {}}
