"""Executes a workflow on a launched server and fetches the files that it made."""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError, field_validator

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.cloud import Cloud, Server
from engine.runtimes.builtin.runcomfy.comfy import Comfy, ComfyUnreachable, Ended, Picture
from engine.runtimes.builtin.runcomfy.inputs import InputFile, upload_all
from engine.runtimes.builtin.runcomfy.run import PromptRun
from engine.runtimes.builtin.runcomfy.service import AT_ONCE, START_S, OneServer, RunComfy, manifest_of
from engine.runtimes.builtin.runcomfy.workflow import NotAWorkflow, Prompt, api_format, classes, completed, is_short, renamed
from engine.runtimes.builtin.tool import BuiltinTool, ToolContext, ToolOutput, TypedTool
from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import NO_FOLDER
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolExample
from toolagent.core.schemas import FILE_PATH

_MOST_FILES = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_NO_FILES = "A workflow makes files: give the tool the `output_schema` of runcomfy_workflow_executor, with the format file-path."

Files = Annotated[tuple[InputFile, ...], Field(max_length=_MOST_FILES, strict=False)]


class Arguments(OneServer):
    workflow: Annotated[
        dict[str, JsonValue],
        Field(description='`{"nodes": [{"id", "type", "inputs"}]}` with links such as `["1", 0]`, or what ComfyUI exports as API format.'),
    ]
    images: Annotated[Files, Field(description="Pictures (or videos) that the workflow loads by these names.")] = ()
    loras: Annotated[Files, Field(description="Uploaded to `loras` in the folder of inputs.")] = ()
    checkpoints: Annotated[Files, Field(description="Uploaded to `checkpoints` in the folder of inputs.")] = ()

    @field_validator("workflow")
    @classmethod
    def _can_be_converted(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        try:
            api_format(value)
        except NotAWorkflow as error:
            raise ValueError(f"{error.path}: {error}") from error
        return value


class OutputFile(ToolOutput):
    node: Annotated[str, Field(description="Id of the node that made it.")]
    kind: Annotated[str, Field(description="ComfyUI's word: `images`, `gifs`, `audio` …")]
    name: str
    file: Annotated[str, Field(json_schema_extra={"format": FILE_PATH}, description="A file id for GET /files/{id}.")]


class Result(ToolOutput):
    prompt_id: str
    files: tuple[OutputFile, ...]
    values: Annotated[dict[str, JsonValue], Field(description="What nodes put out besides files, by node.")]
    node_errors: Annotated[
        dict[str, JsonValue],
        Field(description="What ComfyUI finds wrong with nodes. It left out the outputs that need them, and executed the others."),
    ] = {}


_EXAMPLE: JsonValue = {
    "nodes": [
        {"id": 1, "type": "LoadImage", "inputs": {"image": "input.png"}},
        {"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "result"}},
    ]
}
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

_MANIFEST = manifest_of(
    Arguments,
    Result,
    tool_id="runcomfy_workflow_executor",
    name="执行 ComfyUI 工作流 Execute a ComfyUI workflow",
    description=(
        "在已启动的 ComfyUI 服务器上执行工作流,上传输入文件并取回结果文件。Executes a ComfyUI workflow on a server that launch_comfy_env "
        "started: uploads its files, follows its nodes, and returns the files that it made."
    ),
    tag="run",
    idempotent=False,
    example=ToolExample(
        description="A picture in, the same out",
        input={
            "server_id": "d26d4f31-8696-43ad-ba62-b4f8c268b79a",
            "workflow": _EXAMPLE,
            "images": [{"name": "input.png", "base64": _PIXEL}],
        },
    ),
    timeout_s=3600,
    concurrency=AT_ONCE,
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, Execute(RunComfy(options)).run)


class Execute:
    def __init__(self, service: RunComfy) -> None:
        self._service = service

    async def run(self, arguments: Arguments, context: ToolContext) -> Result:
        """Raises CallFailed."""
        if context.files == NO_FOLDER:
            raise CallFailed(ErrorType.REJECTED, _NO_FILES)
        async with self._service.cloud() as cloud:
            url = await self._address(cloud, arguments.server, context)
            async with Comfy(url, self._service.peer) as comfy:
                try:
                    return await self._executed(cloud, comfy, arguments, context)
                except ComfyUnreachable as error:
                    raise await _lost(cloud, arguments.server, error) from error

    async def _address(self, cloud: Cloud, server_id: str, context: ToolContext) -> str:
        """The server's address, once it is ready. A server that was found after a lost launch may still be starting."""
        clock, asked = asyncio.get_running_loop().time, 0
        server, end = _there(await cloud.server(server_id), server_id), clock() + START_S
        while server.is_coming and not server.is_ready and clock() < end:
            context.progress(f"server {server_id} is {server.current_status or 'Starting'}")
            await asyncio.sleep(self._service.pause_s(asked))
            seen, is_known = await cloud.seen(server_id)
            server = _there(seen, server_id) if is_known else server
            asked += 1
        if not server.is_ready:
            message = f"The server {server_id!r} is {server.current_status!r}, not ready."
            raise CallFailed(ErrorType.REJECTED, message, {"server_id": server_id, "status": server.current_status})
        return server.main_service_url or ""

    async def _executed(self, cloud: Cloud, comfy: Comfy, arguments: Arguments, context: ToolContext) -> Result:
        progress = context.progress
        await upload_all(comfy, arguments.checkpoints, "checkpoints", progress)
        await upload_all(comfy, arguments.loras, "loras", progress)
        # In a folder of this call: images of another call may have the same names.
        names = await upload_all(comfy, arguments.images, context.call_id, progress)
        prompt: Prompt = renamed(api_format(arguments.workflow), names)
        if is_short(arguments.workflow):
            prompt = completed(prompt, {kind: await comfy.defaults(kind) for kind in sorted(classes(prompt))})
        is_gone = partial(_is_gone, cloud, arguments.server)
        run = PromptRun(comfy, self._service.peer, progress, is_gone, self._service.longest_pause_s)
        queued, ended = await run.run(prompt, context.call_id)
        files = [await self._fetched(comfy, one, number, context.files) for number, one in enumerate(_pictures(ended))]
        return Result(prompt_id=queued.prompt_id, files=tuple(files), values=_values(ended), node_errors=queued.node_errors)

    async def _fetched(self, comfy: Comfy, found: tuple[str, str, Picture], number: int, folder: Path) -> OutputFile:
        node, kind, picture = found
        own = folder / str(number)  # two nodes may use the same name
        own.mkdir(parents=True, exist_ok=True)
        path = own / (_UNSAFE.sub("_", picture.filename).lstrip(".") or "output")
        await comfy.fetch(picture, path, self._service.max_file_bytes)
        return OutputFile(node=node, kind=kind, name=picture.filename, file=str(path))


def _there(server: Server | None, server_id: str) -> Server:
    """Raises CallFailed if there is no such server."""
    if server is None:
        message = f"There is no server {server_id!r}: it was stopped, or its time is over. Launch another with launch_comfy_env."
        raise CallFailed(ErrorType.REJECTED, message, {"server_id": server_id, "cause": "server_gone"})
    return server


async def _is_gone(cloud: Cloud, server_id: str) -> bool:
    """False also if the provider does not tell."""
    try:
        server = await cloud.server(server_id)
    except CallFailed:
        return False
    return server is None or not server.is_ready


async def _lost(cloud: Cloud, server_id: str, error: ComfyUnreachable) -> CallFailed:
    if await _is_gone(cloud, server_id):
        message = "The server disappeared. Launch another with launch_comfy_env."
        return CallFailed(ErrorType.EXECUTION_ERROR, message, {"server_id": server_id, "cause": "server_gone"})
    message = f"ComfyUI does not answer as it should: {error}."
    return CallFailed(ErrorType.EXECUTION_ERROR, message, {"server_id": server_id, "cause": "no_answer"}, "unknown")


def _pictures(ended: Ended) -> Iterator[tuple[str, str, Picture]]:
    """Every output file, with its node and kind."""
    for node, outputs in ended.outputs.items():
        for kind, listed in outputs.items():
            for one in listed if isinstance(listed, list) else ():
                if (picture := _picture(one)) is not None:
                    yield node, kind, picture


def _picture(value: JsonValue) -> Picture | None:
    try:
        return Picture.model_validate(value)
    except ValidationError:
        return None


def _values(ended: Ended) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for node, outputs in ended.outputs.items():
        kept: dict[str, JsonValue] = {
            kind: value for kind, value in outputs.items() if not (isinstance(value, list) and any(map(_picture, value)))
        }
        if kept:
            found[node] = kept
    return found
