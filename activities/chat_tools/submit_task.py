"""Submits a task that makes or repairs a tool."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from activities.agent_tool import AgentTool, AgentToolRefused, Arguments, Used
from engine.chats.desk import Desk
from engine.chats.submissions import SubmissionRefused
from toolagent.contracts.task_specs import LONGEST_WORDS, MOST_EXAMPLES
from toolagent.core.task_requests import SpecError, read_spec


class SubmitTask(Arguments):
    type: Annotated[
        Literal["build_tool", "github_deploy", "repair_tool"],
        Field(description="Write a tool, make one of a repository, or mend one."),
    ]
    description: Annotated[str, Field(max_length=LONGEST_WORDS, description="What the tool has to do, or what is wrong with it.")] = ""
    tool_name: Annotated[str | None, Field(description="The id of the new tool: small letters, digits, _ and -.")] = None
    tool_id: Annotated[str | None, Field(description="Of the tool to mend.")] = None
    repo_url: Annotated[str | None, Field(description="Of the repository.")] = None
    ref: Annotated[str | None, Field(description="A branch, a tag or a commit of the repository.")] = None
    path: Annotated[str | None, Field(description="The folder of the repository that is meant.")] = None
    runtime: Annotated[Literal["local", "docker"] | None, Field(description="Where it is to run; left out: whichever fits.")] = None
    error: Annotated[str | None, Field(description="What the tool to mend says when it fails.")] = None
    examples: Annotated[
        list[JsonValue],
        Field(max_length=MOST_EXAMPLES, description='Calls and what has to come of them: {"input": {…}, "expected_output": …}.'),
    ] = []


async def submit_task(arguments: SubmitTask, desk: Desk) -> Used:
    try:
        spec = read_spec(arguments.model_dump(mode="json", exclude_none=True, exclude_unset=True), place="")
        task_id = await desk.tables.submissions.submit(desk.chat_id, spec, desk.key)
    except (SpecError, SubmissionRefused) as refused:
        raise AgentToolRefused(f"No task was begun: {refused}") from refused
    follow = f"GET /tasks/{task_id} says how far it is; this chat is told when it has ended."
    return Used({"task_id": task_id, "status": "submitted", "follow": follow}, task_ids=(task_id,))


SUBMIT_TASK = AgentTool(
    "submit_task",
    "Begin a task that makes a tool (build_tool: from a description; github_deploy: of a repository) or mends one (repair_tool). Only when "
    "no tool there does what is needed, and when who asks wants it. It goes on by itself for minutes; the chat says how it ended.",
    SubmitTask,
    submit_task,
)
