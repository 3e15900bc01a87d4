"""Input files of a workflow: in base64, or stored by the service."""

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


async def upload_all(comfy: Comfy, files: tuple[InputFile, ...], folder: str, progress: Progress) -> dict[str, str]:
    """The paths by which nodes load the files, by name."""
    paths: dict[str, str] = {}
    for one in files:
        progress(f"uploading {one.name}")
        content = await asyncio.to_thread(one.content)
        paths[one.name] = (await comfy.upload(one.name, content, folder)).path
    return paths
