"""The files of a workflow: as base64, or as a file that the service keeps."""

import asyncio
import base64
import binascii
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from engine.runtimes.builtin.runcomfy.comfy import Comfy
from engine.runtimes.builtin.tool import ToolArguments
from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import Progress
from toolagent.contracts.calls import ErrorType
from toolagent.core.schemas import FILE_PATH

FileName = Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f]{1,200}$", description="By which the workflow names it, such as `input.png`.")]


class InputFile(ToolArguments):
    name: FileName
    file: Annotated[str | None, Field(json_schema_extra={"format": FILE_PATH}, description="A file id from POST /files.")] = None
    base64: Annotated[str | None, Field(min_length=1, description="The content; a `data:` URL is taken too.")] = None

    @model_validator(mode="after")
    def _has_one_content(self) -> "InputFile":
        if (self.file is None) == (self.base64 is None):
            raise ValueError("give either `file` or `base64`")
        if self.name.strip(". ") == "":
            raise ValueError("`name` is no name of a file")
        return self

    def content(self) -> bytes:
        """Raises CallFailed (`validation_error`)."""
        if self.file is not None:
            return Path(self.file).read_bytes()
        text = (self.base64 or "").partition(";base64,")[2] or self.base64 or ""
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error as error:
            message = f"The content of {self.name!r} is not base64: {error}."
            raise CallFailed(ErrorType.VALIDATION_ERROR, message, {"field": "base64", "name": self.name}) from error


async def sent_images(comfy: Comfy, images: tuple[InputFile, ...], folder: str, progress: Progress) -> dict[str, str]:
    """What nodes have to call them. `folder` is this call's own: another's may have the same names."""
    return {one.name: (await _sent(comfy, one, folder, progress)) for one in images}


async def sent_models(comfy: Comfy, models: tuple[InputFile, ...], folder: str, progress: Progress) -> None:
    for one in models:
        await _sent(comfy, one, folder, progress)


async def _sent(comfy: Comfy, one: InputFile, folder: str, progress: Progress) -> str:
    progress(f"uploading {one.name}")
    content = await asyncio.to_thread(one.content)
    return (await comfy.upload(one.name, content, folder)).path
