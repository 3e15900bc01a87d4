"""Writes a file."""

from typing import Annotated, Literal

from pydantic import Field

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.site import Site
from engine.making.workbench.finishing import finished
from engine.making.workbench.places import place_of


class WriteFile(Arguments):
    path: Annotated[str, Field(description="Below /work; folders on the way are made.")]
    content: str
    mode: Annotated[Literal["overwrite", "append"], Field(description="`append` adds to the end of what is there.")] = "overwrite"


async def write_file(arguments: WriteFile, site: Site) -> Used:
    written = await finished(site.bench.files.write, place_of(arguments.path), arguments.content, arguments.mode, site.use)
    return Used({"status": "written", "path": written.path, "size": written.size})


WRITE_FILE = AgentTool(
    "write_file",
    "Write a text file below /work, whole or to the end of what is there. Write long files in parts of a few hundred lines, the first "
    "with mode overwrite, the rest with append. Containers see /work too, but cannot change it. Returns its path and size in bytes.",
    WriteFile,
    write_file,
)
