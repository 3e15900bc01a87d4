"""Makes a call, and prints its end."""

import json
from pathlib import Path

from toolagent.cli.failures import Interrupted, fail_if
from toolagent.cli.files import file_ids
from toolagent.cli.follow import follow
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.render import describe_error, show_contract, show_json, show_note
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.contracts.references import ResultReference
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.action import own_failure

__all__ = ["awaited", "ended", "finish", "show_detached", "started"]


def started(service: ToolAgentHttp, call: ToolCall) -> ToolResult | TaskAccepted:
    try:
        return service.run(call)
    except KeyboardInterrupt as error:
        raise Interrupted("Stopped while the call was being handed over; the service may have taken it.") from error


def awaited(service: ToolAgentHttp, answer: ToolResult | TaskAccepted, ctrl_c: CtrlC) -> ToolResult:
    """The result of a started call. Raises Interrupted after Ctrl-C, when the service was asked to cancel the call."""
    return answer if isinstance(answer, ToolResult) else ended(follow(service, answer.task_id, ctrl_c))


def show_detached(accepted: TaskAccepted) -> None:
    show_contract(accepted)
    show_note(f"Follow it: toolagent task {accepted.task_id} --follow")


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
    """Prints how a call ended, unless `quiet`, and saves its files. Exit code 1 for a call, or a script, that failed."""
    if json_output:
        show_contract(result)
    if result.status == "error":
        fail_if(True, describe_error(result))
    if file:
        _write_whole(service, result, file)
    elif not json_output and not quiet:
        _show(result)
    if folder:
        _save_files(service, result, folder)
    # If a script fails, its call has still succeeded, but the command has not.
    if (failure := own_failure(result.result)) is not None:
        fail_if(True, "" if quiet else ": ".join(failure[:2]))


def _show(result: ToolResult) -> None:
    """Prints the result. If it is a reference, stderr says how to get the whole result."""
    show_json(result.result)
    if result.is_reference:
        reference = ResultReference.model_validate(result.result)
        show_note(f"The result is {reference.size} bytes of JSON, shown is a reference with its beginning. To have it whole:", "yellow")
        show_note(f"  toolagent file get {reference.file_id} -o result.json")


def _write_whole(service: ToolAgentHttp, result: ToolResult, file: Path) -> None:
    if result.is_reference:
        service.save(ResultReference.model_validate(result.result).file_id, file)
    else:
        file.write_text(json.dumps(result.result, ensure_ascii=False), "utf-8")
    show_note(f"saved {file}")


def _save_files(service: ToolAgentHttp, result: ToolResult, folder: Path) -> None:
    found = list(file_ids(result.result))
    for file_id in found:
        show_note(f"saved {service.download(file_id, folder)}")
    if not found:
        show_note("The result names no files.")
