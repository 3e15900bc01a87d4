"""A task for which there is a tool already ends with what can be called."""

import pytest

from toolagent.contracts.making import MakeRequest
from toolagent.contracts.making_steps import Inspected
from toolagent.contracts.task_specs import GithubDeploy
from workflows.answering import answered

REQUEST = MakeRequest(task_id="create_00000001", spec=GithubDeploy(repo_url="https://host/notes", tool_name="notes"))


@pytest.mark.parametrize(
    ("found", "tool_ids"),
    [
        (Inspected(answered_by="notes"), ("notes",)),
        (Inspected(answered_by="notes", tool_ids=("notes_add", "notes_list")), ("notes_add", "notes_list")),
    ],
)
async def test_a_group_answers_with_all_its_tools(found: Inspected, tool_ids: tuple[str, ...]) -> None:
    end = await answered(REQUEST, found)
    assert end is not None
    assert (end.tool_ids, "'notes' does that already" in end.reason) == (tool_ids, True)
