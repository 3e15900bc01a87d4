"""One call as a workflow of its own: what HTTP, MCP, the command line and other agents' child workflows start."""

from pydantic import JsonValue, ValidationError
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult, ValidationIssue
from toolagent.core.idempotency import call_id_of_workflow
from toolagent.core.results import failed
from workflows.invoke import invoke

__all__ = ["InvokeTool"]


@workflow.defn(name=names.INVOKE_TOOL)
class InvokeTool:
    @workflow.run
    async def run(self, call: JsonValue) -> ToolResult:
        """Takes a `ToolCall` as plain JSON.

        Anybody may start this with anything. A typed argument that does not fit would fail the workflow task for ever; so it is
        checked here, and what is wrong with it is the answer.
        """
        info = workflow.info()
        call_id = call_id_of_workflow(info.workflow_id, info.first_execution_run_id)
        try:
            asked = ToolCall.model_validate(call)
        except ValidationError as error:
            return _malformed(call_id, error)
        if info.typed_search_attributes.get(names.TOOL_ID) is None:
            caller = [names.CALLER.value_set(asked.caller.caller_id)] if asked.caller.caller_id else []
            workflow.upsert_search_attributes([names.TOOL_ID.value_set(asked.tool_id), names.TASK_TYPE.value_set("call"), *caller])
        return await invoke(asked, call_id)


def _malformed(call_id: str, error: ValidationError) -> ToolResult:
    issues = tuple(
        ValidationIssue(path=".".join(["$", *map(str, issue["loc"])]), message=issue["msg"], keyword=issue["type"])
        for issue in error.errors(include_url=False, include_input=False)
    )
    message = "The input is not a ToolCall: " + "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:5])
    wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=message)
    return failed(call_id, "", wrong, workflow.now(), validation_errors=issues)
