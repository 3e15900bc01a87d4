"""The next step of a task."""

from dataclasses import replace

from toolagent.contracts.making import Inspection, MakeRequest, Stage
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.making_steps import BriefStep, Inspected
from toolagent_service.making import making

LIBRARY = Inspected(inspection=Inspection(files=21, code_files=3))


def test_who_hands_in_a_library_reads_what_was_looked_for_and_what_to_add() -> None:
    request = MakeRequest(task_id="create_00000001", spec=GithubDeploy(repo_url="https://example.com/x", tool_name="x"))
    state = replace(making.begin(request), stage=Stage.BUILD, inspected=LIBRARY, has_no_answer=True, is_laid_out=True)
    step = making.next_step(making.after_ways(state, is_every_way_tried=True))
    assert isinstance(step, making.Act)
    assert isinstance(step.argument, BriefStep)
    assert step.argument.notes == (
        "Nothing in the repository's 21 files can be run or called as it is; looked for: a *.tool.json, an MCP server, a Python project "
        "with an app, an app of Node.js, a Dockerfile with EXPOSE, console scripts, an OpenAPI document. A script that uses its code "
        "becomes a tool with a *.tool.json beside it (`toolagent new-tool` writes one).",
    )
