"""Which tools can be repaired here: those whose files are in the content store."""

from functools import reduce

from toolagent.contracts.catalog import ToolEntry
from toolagent.core.calls.masking import shortened


def unmendable(entry: ToolEntry) -> str:
    """Why its files cannot be changed here, and what to do instead; empty if they can."""
    tool_id = entry.manifest.tool_id
    if not entry.sources:
        return f"The tool {tool_id!r} has no source: nothing says where it runs from. Register it with one."
    source = entry.sources[0]
    if source.remedy:
        told = reduce(lambda text, server: text.replace(server, shortened(server)), source.traits.servers, source.remedy)
        return f"The tool {tool_id!r} {told}"
    if source.archive:
        return ""
    folder = source.folder or ""
    return f"The files of {tool_id!r} are not in the content store. Put them into {folder!r} of the data folder; they are imported."


def content_of(entry: ToolEntry) -> str:
    """The archive of the files to repair; empty if there is none."""
    return next((source.archive or "" for source in entry.sources[:1]), "")
