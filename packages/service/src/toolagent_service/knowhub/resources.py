"""KnowHub's resources about tools."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from toolagent.contracts.knowhub import LeftOutResource
from toolagent.core.texts import well_formed

PREFIX = "tools/"
"""The prefix of ids of resources about tools: `tools/{category}/{slug}`."""

NOT_CONNECTED, CONNECTED = "未接入", "已接入"
"""Values of `status`. There is also `测试中`, which is never changed."""

_LISTS = ("resources", "items", "data", "results")
"""Fields with the list, if it is not the whole answer."""


_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource about a tool. `items` are the ids in its `toolhub_items`."""

    resource_id: str
    category: str
    slug: str
    title: str
    description: str
    status: str
    items: frozenset[str]
    metadata: Mapping[str, JsonValue]


def listed_resources(document: JsonValue) -> tuple[dict[str, JsonValue], ...] | None:
    """The resources in an answer of `GET /api/resource`: a list, or an object with one; None for anything else."""
    found = _list_in(document)
    return None if found is None else tuple(one for one in found if isinstance(one, dict) and isinstance(one.get("id"), str))


def left_out_of(document: JsonValue) -> tuple[LeftOutResource, ...]:
    """Entries without an id, which cannot be read or changed."""
    listed = enumerate(_list_in(document) or (), start=1)
    return tuple(
        LeftOutResource(entry=_called(one) or f"entry {number}", reason="It has no `id`, or one that is no text.")
        for number, one in listed
        if not (isinstance(one, dict) and isinstance(one.get("id"), str))
    )


def resource_of(said: Mapping[str, JsonValue]) -> Resource | None:
    """The resource; None if it is not about a tool."""
    resource_id = said.get("id")
    if not isinstance(resource_id, str) or not resource_id.startswith(PREFIX):
        return None
    category, _, slug = resource_id.removeprefix(PREFIX).rpartition("/")
    found = said.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    named = metadata.get("tool_slug")
    return Resource(
        resource_id,
        category,
        well_formed(named) if isinstance(named, str) and named else slug,
        _text(said, "title"),
        _text(said, "description") or _text(said, "body"),
        _text(metadata, "status"),
        frozenset(name for item in items_of(metadata) for name in item),
        metadata,
    )


def items_of(metadata: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """Its `toolhub_items`. Invalid ones are skipped."""
    items = metadata.get("toolhub_items")
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []


def _list_in(document: JsonValue) -> list[JsonValue] | None:
    if isinstance(document, dict):
        document = next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)
    return document if isinstance(document, list) else None


def _called(said: JsonValue) -> str:
    if not isinstance(said, dict):
        return ""
    metadata = said.get("metadata")
    return (_text(said, "title") or (_text(metadata, "tool_slug") if isinstance(metadata, dict) else ""))[:_LONGEST_NAME]


def _text(said: Mapping[str, JsonValue], name: str) -> str:
    value = said.get(name)
    return well_formed(value) if isinstance(value, str) else ""
