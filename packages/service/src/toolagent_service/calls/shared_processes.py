"""Which tools run in one process, and what the folders of what runs a tool are called."""

import hashlib

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import Source

_OF_A_REQUEST = {
    "endpoint_path", "http_method", "query_parameters", "header_parameters", "body_parameter", "parameter_styles", "body_encoding",
    "body_media_type", "file_parameters", "tool_name", "login", "hints",
}  # fmt: skip
"""What says how one tool is called, and nothing of the process that it is in."""


def process_key(tool: ToolManifest, source: Source) -> str | None:
    """The same for tools that run in one process: of one name, from the same files, started alike, with the same rights."""
    if source.shared_process is None:
        return None
    # Files that are not in the content store may change with each version.
    version = "" if source.archive else tool.version
    told = (source.model_dump_json(exclude=_OF_A_REQUEST), tool.security_context.model_dump_json(), version)
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def name_inside(tool_id: str, source: Source) -> str:
    """What the process is told that it is: TOOL_AGENT_TOOL_ID."""
    return source.shared_process or tool_id


def place_of(tool_id: str, source: Source) -> str:
    """The name of the folders of its home, its logs and the files of its calls: the tool's id, or a process's name and what no id has."""
    process = source.shared_process
    return tool_id if process is None else place_of_process(process)


def place_of_process(process: str) -> str:
    return f"{process}.shared"


def place_of_volumes(place: str) -> str:
    """The name of the folder of the volumes of this place (`place_of`); no other place has it."""
    return f"{place.replace(':', '_')}.{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def place_of_calls(entry: ToolEntry) -> str:
    """The name of the folder of the files of this tool's calls, whichever source they go to."""
    places = (place_of(entry.manifest.tool_id, source) for source in entry.sources if source.shared_process is not None)
    return next(places, entry.manifest.tool_id)
