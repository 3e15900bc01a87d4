"""A value for a schema: the smallest one, or one with every field filled."""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from tests.contracts.wire import Schema
from toolagent.contracts.chats import CHAT_ID_PATTERN
from toolagent.contracts.identifiers import CALL_ID_PATTERN, FILE_ID_PATTERN, SECRET_PATTERN, TOOL_ID_PATTERN
from toolagent.contracts.mcp_servers import PREFIX_PATTERN
from toolagent.contracts.sessions import SESSION_ID_PATTERN

__all__ = ["NoSample", "Samples"]

_BY_PATTERN = {
    TOOL_ID_PATTERN: "image_stitcher",
    CHAT_ID_PATTERN: "user_A_window_1",
    CALL_ID_PATTERN: "call-0123456789abcdef0123456789abcdef",
    FILE_ID_PATTERN: "file_0123456789abcdef0123456789abcdef",
    SECRET_PATTERN: "secret:WEATHER_KEY",
    "^/": "/compress",
    r"^https?://[^\s/]": "https://api.example.com",
    r"^https?://": "https://api.example.com",
    r"^https?://[^\s/@]+(/[^\s@]*)?$": "https://login.example.com/token",
    r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,100}$": "session",
    r"^([\w.+*-]+/[\w.+*-]+)?$": "image/png",
    r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$": "main",
    r"^\d+ *[kmgtKMGT]?[iI]?[bB]?$": "512m",
    r"^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$": "*.example.com",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "TZ",
    r"^[A-Za-z0-9._*-]+$": "acme-*",
    r"^(create|repair)_[0-9a-f]{8}$": "create_0a1b2c3d",
    r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$": "X-Unit",
    r"^https?://[^\s\x00-\x1f\x7f]+$": "https://agent.example.com/told",
    r"^[a-z][a-z0-9_-]*$": "default",
    PREFIX_PATTERN: "default",
    r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$": "default",
    r"^\$(\.[A-Za-z_][A-Za-z0-9_-]*)*$": "$.server_id",
    SESSION_ID_PATTERN: "session-0123456789abcdef",
    r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$": "1.2.3",
    r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$": "1.2.3",
}
_MOMENT = "2026-03-26T10:30:00Z"
_ANYTHING: JsonValue = {"anything": [1, "text", None, True]}


class NoSample(ValueError):
    """A schema has a form without a known sample."""


class Samples:
    """Values for schemas that refer to these definitions."""

    def __init__(self, definitions: Mapping[str, Schema], *, full: bool) -> None:
        self._definitions = definitions
        self._full = full

    def of(self, schema: Schema, name: str = "text") -> JsonValue:
        """Raises NoSample, naming the pattern, if a sample must be added above."""
        for key in ("const", "enum", "anyOf", "oneOf", "$ref"):
            if key in schema:
                return self._of_choice(key, schema[key], name)
        match schema.get("type"):
            case "string":
                return _text(schema, name)
            case "integer" | "number" as kind:
                return _number(schema, kind)
            case "array":
                return [self.of(cast("Schema", schema.get("items", {})), name)]
            case "object":
                return self._of_object(schema, name)
            case kind:
                return {"boolean": True, "null": None}.get(str(kind), _ANYTHING)

    def _of_choice(self, key: str, value: JsonValue, name: str) -> JsonValue:
        match key, value:
            case "$ref", str():
                return self.of(self._definitions[value.removeprefix("#/$defs/")], name)
            case (("anyOf" | "oneOf"), list()):
                return self.of(cast("Schema", value[0]), name)
            case "enum", list():
                return value[-1]
            case _:
                return value

    def _of_object(self, schema: Schema, name: str) -> JsonValue:
        if "properties" not in schema:
            if isinstance(named := schema.get("patternProperties"), dict):
                return {_BY_PATTERN[pattern]: self.of(cast("Schema", inner), name) for pattern, inner in named.items()}
            inner = schema.get("additionalProperties")
            return {name: self.of(inner, name)} if isinstance(inner, dict) else {name: _ANYTHING}
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        properties = cast("dict[str, Schema]", schema["properties"])
        # The tag of a union always travels, though it has a default.
        wanted = {key: inner for key, inner in properties.items() if self._full or key in needed or "const" in inner}
        return {key: self.of(inner, key) for key, inner in wanted.items()}


def _text(schema: Schema, name: str) -> str:
    if schema.get("format") == "date-time":
        return _MOMENT
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        if pattern not in _BY_PATTERN:
            raise NoSample(f"Write a value for the pattern {pattern!r} (field {name!r}) into tests/contracts/samples.py.")
        return _BY_PATTERN[pattern]
    return name


def _number(schema: Schema, kind: str) -> int | float:
    lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    bottom = lowest if isinstance(lowest, int | float) else 0
    return bottom + (1 if kind == "integer" else 1.5)
