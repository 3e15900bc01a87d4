"""Parts of the reason of an ended task: what was left out, what existed before, and why a model had to build it."""

from collections.abc import Sequence

from toolagent.contracts.making import Tried
from toolagent.core.calls.masking import masked_text

_MOST_LISTED = 5
_MOST_NAMED = 8
_LINES = 20
_LONGEST = 1_500

_BEFORE = "Why it was not built without a model: "


def ready_reason(tool_ids: Sequence[str], left_out: Sequence[str] = ()) -> str:
    """`a, b can be called.`, and possible tools that were left out."""
    named, more = tool_ids[:_MOST_NAMED], len(tool_ids) - _MOST_NAMED
    ready = f"{', '.join(named)}{f' and {more} more' if more > 0 else ''} can be called."
    return f"{ready}\n\nLeft out:\n{listed_shortly(left_out)}" if left_out else ready


def there_already(name: str, tool_ids: Sequence[str]) -> str:
    """The reason if the name of the task is that of an active tool or group. Whether these fulfil the request is not checked."""
    if tuple(tool_ids) == (name,):
        return (
            f"There is an active tool {name!r} already, so nothing was built. "
            "It was not checked whether that tool does what is asked for here. "
            f"If it does not: have it repaired (POST /tools/{name}/repair), delete it (DELETE /tools/{name}), or choose another tool_name."
        )
    return (
        f"There is a group {name!r} already, and all its tools can be called ({', '.join(tool_ids)}), so nothing was built. It was "
        "not checked whether they do what is asked for here. If they do not: have them repaired, delete them, or choose another tool_name."
    )


def why_a_model(notes: Sequence[str]) -> str:
    """Why a model has to build the tool. `notes` are reasons, each followed by the output of the attempt."""
    told = masked_text("\n\n".join(map(abridged, filter(None, notes))))
    return f"{_BEFORE}{told}" if told else ""


def of_the_agent(reason: str) -> str:
    """The part of a task's reason about the agent. The reasons of other ways are before or after it."""
    paragraphs = reason.split("\n\n")
    return paragraphs[-1 if reason.startswith(_BEFORE) else 0].partition("\n")[0]


_WAYS = {
    "tool_file": "tool file",
    "mcp": "MCP server",
    "asgi": "app",
    "node_app": "Node.js app",
    "docker": "Dockerfile",
    "program": "console scripts",
    "openapi_remote": "OpenAPI document",
    "coding": "coding agent",
}
_OUTCOMES = {"passed": "passed", "failed": "tried, failed", "not_possible": "not possible", "not_found": "not found"}


def tried_line(tried: Tried) -> str:
    """`console scripts greet, pyproject.toml: tried, failed: …`."""
    reason = " ".join(tried.reason.partition("\n")[0].split())
    return f"{tried.found or _WAYS.get(tried.way, tried.way)}: {_OUTCOMES[tried.outcome]}{f': {reason}' if reason else ''}"


def listed_shortly(items: Sequence[str]) -> str:
    """The first few, each on a line, and the number of others."""
    lines = [f"- {item}" for item in items[:_MOST_LISTED]]
    more = len(items) - _MOST_LISTED
    return "\n".join([*lines, *([f"… and {more} more: see the evidence and the log of the task"] if more > 0 else [])])


def abridged(note: str) -> str:
    """The first line, and the end of the rest: programs write last what stopped them."""
    reason, _, told = note.strip().partition("\n")
    end = "\n".join(told.splitlines()[-_LINES:])
    end = f"…{end[-_LONGEST:]}" if len(end) > _LONGEST else end
    return f"{reason[:_LONGEST]}\n{end}".strip()
