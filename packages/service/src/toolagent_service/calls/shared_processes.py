"""Which tools share a process, and the names of folders of tools and processes."""

import hashlib

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import Source

_OF_A_REQUEST = {
    "endpoint_path", "http_method", "query_parameters", "header_parameters", "body_parameter", "parameter_styles", "body_encoding",
    "body_media_type", "file_parameters", "gives_text", "tool_name", "login", "hints",
}  # fmt: skip
"""Fields of a source that describe requests, not the process."""


def process_key(tool: ToolManifest, source: Source) -> str | None:
    """The same for tools that share a process: with the same process name, files, start and rights."""
    if source.shared_process is None:
        return None
    # Files outside of the content store may change with each version.
    version = "" if source.archive else tool.version
    told = (source.model_dump_json(exclude=_OF_A_REQUEST), tool.security_context.model_dump_json(), version)
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def name_inside(tool_id: str, source: Source) -> str:
    """The value of TOOL_AGENT_TOOL_ID in the process."""
    return source.shared_process or tool_id


def place_of(tool_id: str, source: Source) -> str:
    """The name of the folders for its home, logs and files of calls: the tool's id, or a name of the process that is no valid id."""
    process = source.shared_process
    return tool_id if process is None else place_of_process(process)


def place_of_process(process: str) -> str:
    return f"{process}.shared"


def place_of_volumes(place: str) -> str:
    """The unique name of the folder for the volumes of this place (`place_of`)."""
    return f"{place.replace(':', '_')}.{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def place_of_calls(entry: ToolEntry) -> str:
    """The name of the folder for files of this tool's calls, for all its sources."""
    places = (place_of(entry.manifest.tool_id, source) for source in entry.sources if source.shared_process is not None)
    return next(places, entry.manifest.tool_id)
