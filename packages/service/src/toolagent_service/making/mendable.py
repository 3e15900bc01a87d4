"""Which tools can be mended here: those whose files we have."""

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import BuiltinSource, DockerSource, LocalSource, McpSource, PackedSource, RemoteSource, ScriptSource
from toolagent.core.calls.masking import shortened

__all__ = ["content_of", "unmendable"]


def unmendable(entry: ToolEntry) -> str:
    """Why its files cannot be changed here, and what to do instead; empty when they can."""
    tool_id = entry.manifest.tool_id
    if not entry.sources:
        return f"The tool {tool_id!r} has no source: nothing says where it runs from. Register it with one."
    match entry.sources[0]:
        case LocalSource(content=content, host_dir=str(host_dir)) | McpSource(content=content, host_dir=str(host_dir), url=None):
            return "" if content else _not_packed(tool_id, host_dir)
        case DockerSource() as source:
            return _of_container(tool_id, source)
        case RemoteSource(remote_url=url):
            remedy = "tell whoever runs it; if it has moved, register the tool with its new address"
            return f"The tool {tool_id!r} is a service at {shortened(url)}, and its code is not here: {remedy}."
        case BuiltinSource():
            return f"The tool {tool_id!r} is a part of this service. Report the error to whoever maintains that."
        case ScriptSource(script_path=path):
            return f"The tool {tool_id!r} is the script {path!r}. Change that in its folder; it is imported again."
        case McpSource():
            return f"The tool {tool_id!r} is one of an MCP server. Mend the server, or tell whoever runs it."


def content_of(entry: ToolEntry) -> str:
    """The archive of the files that would be mended; empty when there is none."""
    return next((source.archive or "" for source in entry.sources[:1] if isinstance(source, PackedSource)), "")


def _of_container(tool_id: str, source: DockerSource) -> str:
    if source.container_id is not None:
        remedy = "mend it there, or register the tool with a Dockerfile, which can be repaired"
        return f"The tool {tool_id!r} is the container {source.container_id!r}, which nobody could build again: {remedy}."
    if source.dockerfile is None:
        remedy = "mend it where that is built, and register the tool with the new image"
        return f"The tool {tool_id!r} runs from the image {source.image!r}, and its files are not here: {remedy}."
    return "" if source.content else _not_packed(tool_id, source.host_dir or "")


def _not_packed(tool_id: str, host_dir: str) -> str:
    return f"The files of {tool_id!r} are not in the content store. Put them into {host_dir!r} of the data folder; they are imported."
