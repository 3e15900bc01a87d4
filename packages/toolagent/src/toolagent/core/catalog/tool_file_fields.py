"""Finds misnamed and misplaced keys of a `*.tool.json`, which would have no effect."""

from collections.abc import Collection, Mapping

from pydantic.fields import FieldInfo

from toolagent.contracts.manifest import SecurityContext
from toolagent.core.suggestions import nearest

__all__ = ["meant"]

_OURS = {
    "inputSchema": "parameters",
    "input_schema": "parameters",
    "argsSchema": "parameters",
    "args_schema": "parameters",
    "arguments": "parameters",
    "returns": "output",
    "outputSchema": "output",
    "output_schema": "output",
    "resultSchema": "output",
    "responseSchema": "output",
    "requiresApproval": "requiresConfirmation",
    "needsApproval": "requiresConfirmation",
}
"""Our keys by those of MCP, model providers and other frameworks."""

_AT_THE_TOP = (
    "parameters",
    "output",
    "securityContext",
    "dependencies",
    "timeoutSeconds",
    "sideEffectScope",
    "permissionClass",
    "requiresConfirmation",
    "concurrency",
)


def meant(key: str, here: Collection[str], given: Collection[str]) -> str | None:
    """The fault of a key that is not one of the fields `here` (`given` are present); None for an unknown key."""
    ours = _OURS.get(key, key)
    if ours in here:
        return None if ours in given else f"Did you mean {ours!r}?"
    if (place := _PLACES.get(ours)) is not None:
        return f"Its place is $.{place}." if ours == key else f"Did you mean $.{place}?"
    near = nearest(key, set(here) - set(given), limit=1) if 2 < len(key) <= 100 else ()
    return f"Did you mean {near[0]!r}?" if near else None


def _places() -> Mapping[str, str]:
    """The path of each known key in the file."""
    places = {name: name for name in _AT_THE_TOP}
    for name, about in SecurityContext.model_fields.items():
        part = f"securityContext.{about.alias or name}"
        fields: Mapping[str, FieldInfo] = getattr(about.annotation, "model_fields", {})
        if fields:
            places |= {about.alias or name: part}
            places |= {field.alias or inner: f"{part}.{field.alias or inner}" for inner, field in fields.items()}
    return places


_PLACES = _places()
