"""From a call that was handed over to what is printed of its end."""

import json
from pathlib import Path

import typer

from toolagent.cli.failures import ExitCode, Interrupted
from toolagent.cli.files import file_ids
from toolagent.cli.render import describe_error, show_contract, show_failure, show_json, show_note
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.contracts.references import ResultReference
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.action import own_failure

__all__ = ["ended", "finish", "started"]


def started(service: ToolAgentHttp, call: ToolCall) -> ToolResult | TaskAccepted:
    try:
        return service.run(call)
    except KeyboardInterrupt as error:
        raise Interrupted("Stopped while the call was being handed over; the service may have taken it.") from error


def ended(task: TaskView) -> ToolResult:
    if task.result:
        return task.result
    status = "success" if task.status is TaskState.COMPLETED else "error"
    return ToolResult(status=status, call_id=task.task_id, tool_id=task.tool_id or "", metadata={"task_status": task.status.value})


def finish(
    service: ToolAgentHttp,
    result: ToolResult,
    *,
    json_output: bool = False,
    quiet: bool = False,
    folder: Path | None = None,
    file: Path | None = None,
) -> None:
    """Print how a call ended (unless `quiet`) and save its files; a failed call, or script, is exit code 1."""
    if json_output:
        show_contract(result)
    if result.status == "error":
        show_failure(describe_error(result))
        raise typer.Exit(ExitCode.FAILED)
    if file:
        _write_whole(service, result, file)
    elif not json_output and not quiet:
        _show(result)
    if folder:
        _save_files(service, result, folder)
    # A script that ran and failed is a call that succeeded, and a command that did not.
    if (failure := own_failure(result.result)) is not None:
        if not quiet:
            show_failure(": ".join(failure[:2]))
        raise typer.Exit(ExitCode.FAILED)


def _show(result: ToolResult) -> None:
    """The result; of one that is too large for that, how it begins, on stderr, with how to get it."""
    if not result.is_reference:
        show_json(result.result)
        return
    reference = ResultReference.model_validate(result.result)
    show_json(result.result)
    show_note(f"The result is {reference.size} bytes of JSON, shown is a reference with its beginning. To have it whole:", "yellow")
    show_note(f"  toolagent file get {reference.file_id} -o result.json")


def _write_whole(service: ToolAgentHttp, result: ToolResult, file: Path) -> None:
    if result.is_reference:
        reference = ResultReference.model_validate(result.result)
        service.save(reference.file_id, file)
    else:
        file.write_text(json.dumps(result.result, ensure_ascii=False), "utf-8")
    show_note(f"saved {file}")


def _save_files(service: ToolAgentHttp, result: ToolResult, folder: Path) -> None:
    found = list(file_ids(result.result))
    for file_id in found:
        show_note(f"saved {service.download(file_id, folder)}")
    if not found:
        show_note("The result names no files.")
