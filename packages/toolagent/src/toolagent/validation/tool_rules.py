"""What JSON Schema and version ranges allow in files of tools."""

from pydantic import JsonValue

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.manifest import JsonSchema
from toolagent.validation.schemas import issues_of, schema_faults
from toolagent.validation.versions import NotARangeError, best_of

__all__ = ["ToolRules", "matches"]


class ToolRules:
    """Those by which calls are checked too, so that what is loaded can be called. See `toolagent.core.tool_files.Rules`."""

    def schema_faults(self, schema: JsonSchema) -> tuple[ValidationIssue, ...]:
        return schema_faults(schema)

    def issues_of(self, schema: JsonSchema, value: JsonValue) -> tuple[ValidationIssue, ...]:
        return issues_of(schema, value)

    def range_fault(self, wanted: str) -> str | None:
        try:
            best_of(wanted, ())
        except NotARangeError as error:
            return str(error)
        return None


def matches(wanted: str, version: str) -> bool:
    """Whether a range means a version. Raises NotARangeError."""
    return best_of(wanted, (version,)) is not None
