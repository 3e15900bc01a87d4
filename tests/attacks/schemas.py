"""Schemas whose validation takes forever, or reports too many errors."""

import json

from pydantic import JsonValue

from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import put_tool
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_BRANCHING: JsonValue = {
    "$defs": {
        "n": {
            "anyOf": [
                {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
                {"type": "array", "items": {"$ref": "#/$defs/n"}, "maxItems": 5},
                {"type": "boolean"},
            ]
        }
    },
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/n"}},
}


def nested(depth: int, inmost: JsonValue = "x") -> JsonValue:
    for _ in range(depth):
        inmost = [inmost]
    return inmost


def _doubling(levels: int) -> JsonValue:
    """Each level refers to the next one twice: without recursion, one value is checked 2^levels times."""
    definitions: dict[str, JsonValue] = {"l0": {"type": "integer"}}
    for level in range(1, levels + 1):
        below: JsonValue = {"$ref": f"#/$defs/l{level - 1}"}
        definitions[f"l{level}"] = {"allOf": [below, {"anyOf": [below, {"$ref": f"#/$defs/l{level - 1}"}]}]}
    return {"$defs": definitions, "type": "object", "properties": {"a": {"$ref": f"#/$defs/l{levels}"}}}


def _registered(target: Target, tool_id: str, parameters: JsonValue = None, output: JsonValue = None) -> bool:
    """Add a tool; returns whether it was accepted, once that is known."""
    schemas = {name: schema for name, schema in (("parameters", parameters), ("output", output)) if schema is not None}
    name = put_tool(target.data, tool_id, "", {}, **schemas).relative_to(target.data).as_posix()

    def fate() -> str | None:
        if target.ask("GET", f"/tools/{tool_id}").is_success:
            return "taken"
        faults = json.dumps(target.ask("GET", "/tools").json()["catalog_faults"])
        return "refused" if name in faults or tool_id in faults else None

    return wait_until(fate, f"{tool_id} is taken or refused", 60.0) == "taken"


def _judged(target: Target, name: str, schema: JsonValue, value: object) -> str:
    """A tool with this input schema gets this value, which does not fit: the answer is a fault of the caller, or no such tool."""
    if not _registered(target, f"attack:{name}", parameters=schema):
        return "the schema is refused"
    answer = target.call(f"attack:{name}", {"a": value})
    expect(len(answer.content) < 1 << 20, f"an answer of {len(answer.content):,} bytes")
    return answered(answer, {413, 422, 502})


def branching(target: Target) -> str:
    return _judged(target, "branching", _BRANCHING, nested(18))


def branching_output(target: Target) -> str:
    if not _registered(target, "attack:branching-output", output=_BRANCHING):
        return "the schema is refused"
    answer = target.call("attack:branching-output", {"mode": "nested", "depth": 18})
    return answered(answer, {502})


def doubling(target: Target) -> str:
    return _judged(target, "doubling", _doubling(40), "x")


def pattern(target: Target) -> str:
    schema: JsonValue = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(([a-z])+.)+[A-Z]([a-z])+$"}}}
    return _judged(target, "pattern", schema, "a" * 100_000)


def looking_behind(target: Target) -> str:
    """A pattern beyond finite automata, which needs backtracking."""
    schema: JsonValue = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(?=(a+)+b)(a|aa)+\1$"}}}
    return _judged(target, "looking-behind", schema, "a" * 40_000)


def many_faults(target: Target) -> str:
    schema: JsonValue = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object"}, {"const": "x" * 1000}]}}},
    }
    return _judged(target, "many-faults", schema, [1] * 90_000)


def unique(target: Target) -> str:
    """All items are compared with each other."""
    schema: JsonValue = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    return _judged(target, "unique", schema, [*[{"k": [number]} for number in range(30_000)], {"k": [1]}])


def deep_schema(target: Target) -> str:
    schema: JsonValue = {"type": "integer"}
    for _ in range(90):
        schema = {"type": "object", "properties": {"a": schema}}
    return _judged(target, "deep", schema, "x")


KIND = Kind(
    "schemas",
    (
        Attack(
            "branching", 'parameters `[[[…"x"…]]]`, 18 deep, against a schema with two array branches of itself', branching, in_ci=False
        ),
        Attack("branching-output", "the same as the output of a script", branching_output),
        Attack("doubling", "a schema of 40 levels, each of which refers to the one below twice", doubling),
        Attack("pattern", "a nested quantifier as `pattern`, 100,000 characters", pattern),
        Attack("looking-behind", "a pattern with look-ahead and back reference, 40,000 characters", looking_behind),
        Attack("many-faults", "90,000 faults in one call", many_faults),
        Attack("unique", "`uniqueItems` of 30,000 objects", unique),
        Attack("deep-schema", "a schema of 90 levels", deep_schema),
    ),
)
