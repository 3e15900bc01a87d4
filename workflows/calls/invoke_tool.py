"""One call as a workflow, started by HTTP, MCP, the command line and workflows of other agents."""

from typing import NoReturn

from pydantic import JsonValue, ValidationError
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult, ValidationIssue
from toolagent.core.calls.callbacks import callback_of_call
from toolagent.core.calls.idempotency import call_id_for_key, call_id_of_workflow
from toolagent.core.calls.results import failed
from toolagent.core.json_paths import json_path
from toolagent_service import step_names
from workflows.calls.callbacks import announce
from workflows.groups.adoption import invoke_alone

_MOST_ISSUES = 50
_CANCELLED = "cancelled"
"""In the memo of a run that continues a cancelled call."""


@workflow.defn(name=names.INVOKE_TOOL)
class InvokeTool:
    def __init__(self) -> None:
        self._told = 0

    @workflow.signal(name=step_names.ANSWERED)
    def answered(self, *_: JsonValue) -> None:
        """A session has made the call; the record has the result."""
        self._told += 1

    @workflow.run
    async def run(self, call: JsonValue = None, *surplus: JsonValue) -> ToolResult:
        """Takes a `ToolCall` as plain JSON.

        An invalid typed argument would fail the workflow task for ever, so the input is validated here, and its faults are the result.
        """
        info = workflow.info()
        call_id = call_id_of_workflow(info.workflow_id, info.first_execution_run_id)
        if surplus:
            return _surplus(call_id, len(surplus))
        try:
            asked = ToolCall.model_validate(call)
        except ValidationError as error:
            return _malformed(call_id, error)
        if asked.idempotency_key is not None and call_id != call_id_for_key(asked.caller.caller_id, asked.idempotency_key):
            return _key_without_its_id(call_id, asked)
        if info.typed_search_attributes.get(names.TOOL_ID) is None:
            caller = [names.CALLER.value_set(names.searchable(asked.caller.caller_id))] if asked.caller.caller_id else []
            workflow.upsert_search_attributes([names.TOOL_ID.value_set(asked.tool_id), names.TASK_TYPE.value_set("call"), *caller])
        is_new, is_cancelled = (bool(workflow.memo_value(name, "")) for name in (names.NEW, _CANCELLED))

        def renew(is_cancelled: bool) -> NoReturn:
            # A new run would not know that the earlier one was cancelled.
            workflow.continue_as_new(call, memo={**workflow.memo(), _CANCELLED: "yes"} if is_cancelled else None)

        result = await invoke_alone(asked, call_id, is_new=is_new, told=lambda: self._told, is_cancelled=is_cancelled, renew=renew)
        if asked.callback_url is not None:
            await announce(callback_of_call(asked, result, workflow.now(), info.run_id))
        return result


def _malformed(call_id: str, error: ValidationError) -> ToolResult:
    issues = tuple(
        ValidationIssue(path=json_path(issue["loc"]), message=issue["msg"], keyword=issue["type"])
        for issue in error.errors(include_url=False, include_input=False)[:_MOST_ISSUES]
    )
    message = "The input is not a ToolCall: " + "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:5])
    wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=message)
    return failed(call_id, "", wrong, workflow.now(), validation_errors=issues)


def _surplus(call_id: str, number: int) -> ToolResult:
    wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=f"One input is taken, a ToolCall; there are {number} more.")
    return failed(
        call_id, "", wrong, workflow.now(), validation_errors=(ValidationIssue(path="$", message=wrong.message, keyword="input"),)
    )


def _key_without_its_id(call_id: str, asked: ToolCall) -> ToolResult:
    """The result for a key that is not in the workflow id: only the id makes two starts the same call."""
    wanted = call_id_for_key(asked.caller.caller_id, asked.idempotency_key or "")
    message = f"A call with this idempotency key must be started as workflow {wanted!r} (reuse policy: reject duplicates)."
    issue = ValidationIssue(path="$.idempotency_key", message=message, keyword="idempotency_key")
    wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=message, details={"workflow_id": wanted})
    return failed(call_id, asked.tool_id, wrong, workflow.now(), validation_errors=(issue,))
