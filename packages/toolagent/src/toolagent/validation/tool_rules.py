"""Checks schemas and version ranges of tool files."""

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.validation.schemas import issues_of, schema_faults
from toolagent.validation.versions import NotARangeError, best_of

__all__ = ["ToolRules", "faults_of_test_mode", "matches"]


class ToolRules:
    """The rules of calls, so that a loaded tool can be called. Implements `toolagent.core.catalog.tool_files.Rules`."""

    schema_faults = staticmethod(schema_faults)
    issues_of = staticmethod(issues_of)

    def range_fault(self, wanted: str) -> str | None:
        try:
            best_of(wanted, ())
        except NotARangeError as error:
            return str(error)
        return None


def faults_of_test_mode(manifest: ToolManifest) -> tuple[ValidationIssue, ...]:
    """Faults of a declared test mode, by parameter. The input schema must be usable."""
    named, asked = manifest.input_schema.get("properties"), manifest.test_mode or {}
    known = named if isinstance(named, dict) else {}
    unknown = (
        ValidationIssue(path=f"$.{name}", message=f"The input schema has no property {name!r}.", keyword="properties")
        for name in sorted(asked.keys() - known.keys())
    )
    referred = {word: manifest.input_schema[word] for word in ("$defs", "definitions") if word in manifest.input_schema}
    asked_for: JsonSchema = {**referred, "properties": {name: known[name] for name in asked.keys() & known.keys()}}
    return (*unknown, *issues_of(asked_for, {**asked}))


def matches(wanted: str, version: str) -> bool:
    """Whether a range includes a version. Raises NotARangeError."""
    return best_of(wanted, (version,)) is not None
