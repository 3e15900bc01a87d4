"""Reads a file."""

import asyncio
from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.site import Site
from engine.making.workbench.places import place_of
from toolagent_service.agents.trimming import LONGEST_SHOWN


class ReadFile(Arguments):
    path: Annotated[str, Field(description="Below /work, or a log below /logs.")]
    offset: Annotated[int, Field(ge=0, description="The character to begin with, counted from 0.")] = 0
    limit: Annotated[int, Field(ge=1, le=LONGEST_SHOWN, description="How many characters at most.")] = LONGEST_SHOWN


async def read_file(arguments: ReadFile, site: Site) -> Used:
    place = place_of(arguments.path)
    content = await asyncio.to_thread(site.bench.files.read, place, arguments.offset, arguments.limit)
    state = site.bench.commands.state_of(place)
    return Used({"status": "read", "path": str(place), **({"note": state} if state else {}), "content": content})


READ_FILE = AgentTool(
    "read_file",
    "Read a text file below /work, or the log of a command below /logs. A long one is shown in parts: the end of what is shown says "
    "with which offset to read on. For a folder, or a file that is not there, the answer says what there is.",
    ReadFile,
    read_file,
)
