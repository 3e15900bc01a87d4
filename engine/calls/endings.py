"""Errors of calls, with or without a sent request."""

import re
from collections.abc import Collection, Iterator, Sequence

from pydantic import JsonValue
from pydantic_core import to_json

from toolagent.contracts.calls import ErrorType, ToolError, ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.calls.json_size import MAX_STARTED_VALUES, excess_of
from toolagent.core.calls.masking import masked_text
from toolagent.core.schemas import MASK, mentions_secrets
from toolagent.validation.schemas import find_issues

STEP_LOST = "step_lost"
"""`details.reason` of a call whose step killed or froze its process."""

STEP_FAULTY = "step_faulty"
"""`details.reason` of a call whose answer could not be recorded because of a fault of the service."""

_TOLD = 500
"""Characters of the text of an unforeseen error."""

_TOLD_BYTES, _TOLD_DEPTH = 16_384, 100
"""Limits of a wrong output that is told."""


_LONGEST_PATH, _MOST_PARTS = 300, 8
"""Limits of a path with masked names, and of the dots and brackets in a name. The output, which makes the path, may be hostile."""

_INDEX = re.compile(r"\[\d+\]")


class Refused(Exception):
    """The call is refused, or its outcome is. Has the error and the issues of single values."""

    def __init__(self, kind: ErrorType, message: str, details: JsonValue = None, issues: tuple[ValidationIssue, ...] = ()) -> None:
        super().__init__(message)
        self.error, self.issues = ToolError(type=kind, message=message, details=details), issues


async def misfit_of(manifest: ToolManifest, output: JsonValue) -> Refused | None:
    """The refusal of an output that breaks the output schema, if it does.

    A small output is told: the tool may have acted, and is not asked again. No value of a tool with secrets is, because it may repeat one.
    Raises CheckersBusyError.
    """
    schema = manifest.output_schema
    has_secrets = mentions_secrets(manifest.input_schema) or mentions_secrets(schema)
    issues = await find_issues(schema, output, quotes_values=not has_secrets) if schema else ()
    if not issues:
        return None
    if has_secrets:
        issues = tuple(issue if _quotes_nothing(issue) else _unquoted(issue) for issue in _without_names(issues, schema))
    listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:3])
    message = f"The tool ran, but its output does not fit its output schema: {listed}"
    details: JsonValue = {"outcome": "executed", **({"output": output} if not has_secrets and _is_small(output) else {})}
    return Refused(ErrorType.OUTPUT_VALIDATION_ERROR, message, details, issues)


def lost_step(doing: str, attempts: int, outcome: str) -> ToolError:
    """The error of a call with a step that is not retried."""
    message = (
        f"{doing} was given up: the worker was killed or stood still in each of {attempts} attempts. The call may have a part in that, by "
        "its size or its tool's schemas. Look at the service's log before you make it again."
    )
    details: JsonValue = {"reason": STEP_LOST, "lost_attempts": attempts, "outcome": outcome}
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details=details)


def faulty_step(faults: int, told: str, outcome: str) -> ToolError:
    """The error of a call whose result cannot be recorded. `told` is the fault."""
    message = f"Checking and recording the call's end failed {faults} times for a reason of ours: {told}. The service's log has more."
    return ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"reason": STEP_FAULTY, "outcome": outcome})


def as_sent(error: ToolError) -> ToolError:
    """The error if an attempt had sent the request, so that the tool may have acted."""
    known = error.details if isinstance(error.details, dict) else {}
    # `unavailable` invites another call, which might act twice.
    kind = ErrorType.EXECUTION_ERROR if error.type is ErrorType.UNAVAILABLE else error.type
    message = error.message if known.get("sent") else f"{error.message} An attempt had sent it before, so the tool may have acted."
    return ToolError(type=kind, message=message, details={**known, "sent": True, "outcome": "unknown"})


def refused_when_sent(error: ToolError) -> ToolError:
    """The error of a call that had begun when its process died, and is refused when it is admitted again."""
    return as_sent(error if error.type is ErrorType.CANCELLED else error.model_copy(update={"type": ErrorType.EXECUTION_ERROR}))


def as_not_sent(error: ToolError) -> ToolError:
    """The error if nothing was sent, so that calling again is safe."""
    known = error.details if isinstance(error.details, dict) else {}
    unsure = known.get("outcome") == "unknown"
    details: JsonValue = {name: value for name, value in known.items() if name != "outcome"} | {"sent": False}
    return ToolError(type=ErrorType.UNAVAILABLE if unsure else error.type, message=error.message, details=details)


def told_of(error: Exception) -> str:
    """The part of an error that every caller may read."""
    said = masked_text(str(error)[:_TOLD])
    return f"{type(error).__name__}{said and f': {said}'}"


def _is_small(output: JsonValue) -> bool:
    text = to_json(output, inf_nan_mode="null")
    return output is not None and len(text) <= _TOLD_BYTES and excess_of(text, MAX_STARTED_VALUES, _TOLD_DEPTH) is None


def _quotes_nothing(issue: ValidationIssue) -> bool:
    """Whether the message has only words of the schema, and a mask for the value."""
    return issue.keyword in {"required", "limit"} or issue.message.startswith(MASK)


def _without_names(issues: tuple[ValidationIssue, ...], schema: JsonSchema) -> tuple[ValidationIssue, ...]:
    """The issues, with the names of members masked in their paths that do not stand in the schema: such a name may be a secret."""
    known = {*_names_in(schema)}
    return tuple(issue.model_copy(update={"path": _masked_path(issue.path, known)}) for issue in issues)


def _masked_path(path: str, known: Collection[str]) -> str:
    """The path without names that are not known. Its end is masked, too, if it is very long."""
    steps = re.findall(r"[.\[][^.\[]*", path[1:_LONGEST_PATH])
    told, at = ["$"], 0
    while at < len(steps):
        # A name may have dots and brackets: the longest known one counts.
        parts = next((count for count in range(min(_MOST_PARTS, len(steps) - at), 0, -1) if _is_known(steps[at : at + count], known)), 0)
        told += steps[at : at + parts] or [f"{'.' * steps[at].startswith('.')}{MASK}"]
        at += parts or 1
    return "".join(told) + MASK * (len(path) > _LONGEST_PATH)


def _is_known(steps: Sequence[str], known: Collection[str]) -> bool:
    name = "".join(steps)
    return name[1:] in known if name.startswith(".") else _INDEX.fullmatch(name) is not None


def _names_in(schema: JsonValue) -> Iterator[str]:
    match schema:
        case dict():
            yield from schema
            for part in schema.values():
                yield from _names_in(part)
        case list():
            for part in schema:
                yield from _names_in(part)
        case str():
            yield schema
        case _:
            return


def _unquoted(issue: ValidationIssue) -> ValidationIssue:
    return issue.model_copy(update={"message": f"The value breaks {issue.keyword!r}."})
