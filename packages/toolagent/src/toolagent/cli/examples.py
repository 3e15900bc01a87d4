"""`toolagent test`: runs the examples of a tool."""

import json
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.asking import Asked, asking
from toolagent.cli.endings import awaited, started
from toolagent.cli.failures import fail_if
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.options import Tool, tool_id_of
from toolagent.cli.render import describe_error, show_failure, show_json, show_note, show_rows
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import CallMode, ToolCall
from toolagent.contracts.manifest import ToolExample
from toolagent.core.catalog.expectations import unexpected
from toolagent.core.texts import shortened

__all__ = ["test"]

_SHOWN = 80
_MAX_DIFFERENCES = 5


@dataclass(frozen=True, slots=True)
class _Outcome:
    description: str
    passed: bool
    reason: str
    result: JsonValue
    seconds: float


@asking
def run_examples(
    asked: Asked,
    tool: Tool,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each call.")] = None,
) -> None:
    """Call a tool with each of its examples. The output must contain what the example expects.

    Exit code 1 when one fails, or when the tool has none.

    `toolagent test examples:word-count`
    """
    detail = asked.service.tool(tool_id_of(tool))
    outcomes = [_outcome(asked.service, detail.tool_id, detail.version, example, timeout) for example in detail.examples]
    if asked.json_output:
        show_json([{name: value for name, value in asdict(one).items() if name != "seconds"} for one in outcomes])
    elif outcomes:
        rows = [(one.description, "ok" if one.passed else "failed", f"{one.seconds:.2f}", one.reason) for one in outcomes]
        show_rows(("example", "state", "seconds", "reason"), rows)
    if not outcomes:
        show_failure(f"{detail.tool_id} has no examples.")
    all_passed = bool(outcomes) and all(one.passed for one in outcomes)
    passed = sum(one.passed for one in outcomes)
    show_note(f"{passed} of {len(outcomes)} examples passed.", "green" if all_passed else "red")
    fail_if(not all_passed)


test = run_examples


def _outcome(service: ToolAgentHttp, tool_id: str, version: str, example: ToolExample, timeout: float | None) -> _Outcome:
    call = ToolCall(tool_id=tool_id, version=version, params=example.input, mode=CallMode.ASYNC, timeout_s=timeout)
    with CtrlC() as ctrl_c:
        result = awaited(service, started(service, call), ctrl_c)
    if result.status == "error":
        value, reason = None, describe_error(result)
    else:
        value = service.whole_result(result)
        reason = "" if example.expected_output is None else _differences(example.expected_output, value)
    description = example.description or json.dumps(example.input, ensure_ascii=False)[:_SHOWN]
    return _Outcome(description, not reason, reason, value, result.execution_time)


def _differences(expected: JsonValue, actual: JsonValue) -> str:
    found = [*unexpected(expected, actual)]
    lines = [f"{path}: expected {_short(wanted)}, got {_short(got)}" for path, wanted, got in found[:_MAX_DIFFERENCES]]
    return "\n".join([*lines, *([f"and {len(found) - _MAX_DIFFERENCES} more"] if len(found) > _MAX_DIFFERENCES else [])])


def _short(value: JsonValue) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), _SHOWN)
