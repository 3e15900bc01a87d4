"""The command that makes many calls."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.asking import Asked, asking
from toolagent.cli.endings import show_detached
from toolagent.cli.failures import fail_if
from toolagent.cli.files import read_document
from toolagent.cli.follow import follow
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.options import Detach
from toolagent.cli.parameters import ParameterError, parse_json, require_text
from toolagent.cli.render import show_batch
from toolagent.client.http import Refused, ToolAgentHttp
from toolagent.contracts.batches import BatchedCall, BatchEnd, BatchResult, ToolBatch
from toolagent.contracts.calls import CallMode, ToolCall, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import Problem, TaskAccepted
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.batches import counted, lost, never_made
from toolagent.core.suggestions import nearest

__all__ = ["batch", "require_success", "results_of"]


@asking
def batch(
    asked: Asked,
    source: Annotated[
        str,
        typer.Argument(metavar="FILE|-", show_default=False, help="A JSON list of calls, or the body of POST /run_tools; `-` is stdin."),
    ],
    ordered: Annotated[bool, typer.Option("--ordered", help="One after the other.")] = False,
    stop_on_error: Annotated[
        bool, typer.Option("--stop-on-error", help="Begin no further call after a failure. Without --ordered up to 16 are under way.")
    ] = False,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Idempotency key of the whole batch.")] = None,
    detach: Detach = False,
) -> None:
    """Make many calls and list how they ended. Ctrl-C cancels the batch. Exit code 1 when a call failed.

    `toolagent batch calls.json --ordered --stop-on-error`

    `echo '[{"tool_id": "echo", "params": {"message": "hi"}}]' | toolagent batch - --json`
    """
    service, calls = asked.service, _read(source, {"ordered": ordered, "stop_on_error": stop_on_error, "idempotency_key": key})
    with CtrlC() as ctrl_c:
        answer = service.run_batch(calls)
        if isinstance(answer, TaskAccepted) and detach:
            show_detached(answer)
            return
        ended = answer if isinstance(answer, BatchResult) else results_of(service, follow(service, answer.task_id, ctrl_c))
    asked.show(ended, show_batch)
    require_success(ended)


def require_success(ended: BatchResult) -> None:
    """Exit code 1 when a call failed."""
    fail_if(ended.failed, f"{ended.failed} of {ended.total} calls failed.")


def _read(source: str, options: dict[str, JsonValue]) -> ToolBatch:
    """Raises ParameterError for text that is not JSON, ValidationError for JSON that is not a batch."""
    text = read_document(source)
    source = "stdin" if source == "-" else repr(source)
    document = parse_json(text, source)
    body: dict[str, JsonValue] = document if isinstance(document, dict) else {"calls": document}
    require_text(body)
    _require_fields(source, body, ToolBatch, "")
    for number, call in enumerate(calls if isinstance(calls := body.get("calls"), list) else ()):
        if isinstance(call, dict):
            _require_fields(source, call, ToolCall, f"calls[{number}].")
    given = {name: value for name, value in options.items() if value}
    return ToolBatch.model_validate({**body, **given, "mode": CallMode.ASYNC})


def _require_fields(source: str, body: dict[str, JsonValue], model: type[Contract], place: str) -> None:
    """Raises ParameterError for an unknown field. Contracts ignore such fields, but here it is a typing error."""
    for name in body:
        if name not in model.model_fields:
            near = nearest(name, model.model_fields)
            hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(model.model_fields)}."
            raise ParameterError(f"{source}: {place}{name} is no field of a call or a batch.{hint}")


def results_of(service: ToolAgentHttp, task: TaskView) -> BatchResult:
    """The results of a batch that has ended, from the tasks of its calls. Raises Refused if the batch broke off."""
    if task.result is not None and task.result.error is not None:
        error = task.result.error
        raise Refused(Problem(type=error.type, title=error.type, status=HTTPStatus.BAD_GATEWAY, detail=error.message))
    end = BatchEnd(batch_id=task.task_id, calls=task.calls, cancelled=task.status is TaskState.CANCELLED)
    at = task.ended_at or datetime.now(UTC)
    return counted(end, tuple(never_made(call, at) or _result(service, call, at) for call in task.calls))


def _result(service: ToolAgentHttp, call: BatchedCall, at: datetime) -> ToolResult:
    try:
        return service.task(call.call_id).result or lost(call, at)
    except Refused as refused:
        if refused.problem.status != HTTPStatus.NOT_FOUND:
            raise
        return lost(call, at)
