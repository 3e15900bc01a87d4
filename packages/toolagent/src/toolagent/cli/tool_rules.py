"""What JSON Schema and version ranges allow, for checking files of tools without a service."""

import json
from collections.abc import Iterable

import jsonschema_rs
import semantic_version
from pydantic import JsonValue

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.manifest import JsonSchema

__all__ = ["ToolRules"]

_METASCHEMA: JsonSchema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
_MAX_ISSUES = 100


class ToolRules:
    """Those of the service, which loads the same files. See `toolagent.core.tool_files.Rules`."""

    def schema_faults(self, schema: JsonSchema) -> tuple[ValidationIssue, ...]:
        wrong = _issues(jsonschema_rs.Draft202012Validator(_METASCHEMA).iter_errors(schema))
        if wrong:
            return wrong
        try:
            _validator(schema)
        except ValueError as error:
            return (ValidationIssue(path="$", message=str(error).split("\n", 1)[0][:500], keyword="$schema"),)
        return ()

    def issues_of(self, schema: JsonSchema, value: JsonValue) -> tuple[ValidationIssue, ...]:
        return _issues(_validator(schema).iter_errors(value))

    def range_fault(self, wanted: str) -> str | None:
        try:
            semantic_version.NpmSpec(wanted.strip())
        except ValueError:
            return f"{wanted!r} is neither a version (1.2.3) nor a range (^1.2, ~1.2.3, >=1.2 <2)."
        return None

    def matches(self, wanted: str, version: str) -> bool:
        try:
            return semantic_version.Version(version) in semantic_version.NpmSpec(wanted.strip())
        except ValueError:  # leading zeros
            return wanted == version


def _validator(schema: JsonSchema) -> jsonschema_rs.Draft202012Validator:
    # A copy by way of text: what is left of a schema that failed must not be shared.
    alone: JsonSchema = json.loads(json.dumps(schema))
    return jsonschema_rs.Draft202012Validator(alone, retriever=_refuse, validate_formats=True, ignore_unknown_formats=True)


def _refuse(uri: str) -> JsonValue:
    raise ValueError(f"A schema may not refer to other documents: {uri}")


def _issues(errors: Iterable[jsonschema_rs.ValidationError]) -> tuple[ValidationIssue, ...]:
    found: list[ValidationIssue] = []
    for error, _ in zip(errors, range(_MAX_ISSUES), strict=False):
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
        found.append(ValidationIssue(path=f"${path}", message=error.message[:500], keyword=""))
    return tuple(found)
