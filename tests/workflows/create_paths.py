"""The paths of making a tool."""

from collections.abc import Mapping

from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType

from tests.workflows.ends import Walk
from tests.workflows.making_stage import While, after_event, cancelled, guided, no_model, play_task
from tests.workflows.making_steps import MOVED, WAITING, MakingSteps
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.making import Finding, FindingKind, Inspection
from toolagent_service.contracts.making_steps import BuildOutcome, ExistingTool, Inspected, Registered

__all__ = ["PATHS"]

REPOSITORY: JsonValue = {"type": "github_deploy", "repo_url": "https://example.com/notes.git", "tool_name": "notes"}
WORDS: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "reckoner", "description": "Reckon."}
WITH_AN_EXAMPLE: JsonValue = {**WORDS, "examples": [{"input": {"n": 1}, "expected_output": {"n": 1}}]}
APP = Finding(kind=FindingKind.ASGI, path="app.py", summary="an app", details={"module": "app", "attribute": "app", "project": ""})
AN_APP = Inspected(inspection=Inspection(findings=(APP,), files=2, code_files=1))
TWO_APPS = Inspected(inspection=Inspection(findings=(APP, APP.model_copy(update={"path": "api.py"})), files=2, code_files=2))
NOT_PASSED = "health: nothing answers."


async def play_create(stage: Stage, spec: JsonValue, steps: MakingSteps, during: While | None = None) -> AnyHandle:
    return await play_task(stage, names.CREATE_TOOL, spec, steps, during)


async def without_a_model(stage: Stage) -> AnyHandle:
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=AN_APP))


async def by_the_agent(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps())


async def not_built_without_a_model(stage: Stage) -> AnyHandle:
    """So the agent gets the repository."""
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=AN_APP, built=BuildOutcome(reason="It does not start.")))


async def in_two_rounds(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(faults=(NOT_PASSED, "")))


async def not_passed(stage: Stage) -> AnyHandle:
    """The built tool fails, and there is no model to improve it."""
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=AN_APP, faults=(NOT_PASSED,), turns={0: no_model()}))


async def by_the_second_way(stage: Stage) -> AnyHandle:
    """The tool of the first app fails; that of the second one passes."""
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=TWO_APPS, faults=(NOT_PASSED, "")))


async def not_passed_in_any_round(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(faults=(NOT_PASSED, NOT_PASSED)))


async def answered(stage: Stage) -> AnyHandle:
    """An existing tool fulfils the request."""
    return await play_create(stage, WORDS, MakingSteps(inspected=Inspected(answered_by="reckoner")))


async def passed_by_another(stage: Stage) -> AnyHandle:
    """Two existing tools are tried with the example; the second one passes."""
    existing = (ExistingTool(tool_id="broken", version="1.0.0"), ExistingTool(tool_id="echo", version="1.0.0"))
    return await play_create(stage, WITH_AN_EXAMPLE, MakingSteps(inspected=Inspected(takers=existing)))


async def passed_by_no_other(stage: Stage) -> AnyHandle:
    existing = (ExistingTool(tool_id="broken", version="1.0.0"),)
    return await play_create(stage, WITH_AN_EXAMPLE, MakingSteps(inspected=Inspected(takers=existing)))


async def moved(stage: Stage) -> AnyHandle:
    """Its host dies before it begins; another host takes it."""
    return await play_create(stage, {"type": "build_tool", "tool_name": MOVED, "description": "Move."}, MakingSteps())


async def refused(stage: Stage) -> AnyHandle:
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=Inspected(refused="There is no such repository.")))


async def nothing_to_build(stage: Stage) -> AnyHandle:
    return await play_create(stage, REPOSITORY, MakingSteps())


async def not_registered(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(registered=Registered(refused="The id is another tool's by now.")))


async def no_model_is_set(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(turns={0: no_model()}))


async def the_model_refuses(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(turns={1: no_model()}))


async def told(stage: Stage) -> AnyHandle:
    """A person says something while the agent works."""
    return await play_create(stage, WORDS, MakingSteps(holds="ask"), guided)


async def malformed(stage: Stage) -> AnyHandle:
    return await play_create(stage, None, MakingSteps())


async def cancelled_while_waiting(stage: Stage) -> AnyHandle:
    async def when_it_waits(handle: AnyHandle, _steps: MakingSteps) -> None:
        await after_event(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
        await handle.cancel()

    return await play_create(stage, {"type": "build_tool", "tool_name": WAITING, "description": "Wait."}, MakingSteps(), when_it_waits)


async def cancelled_while_building(stage: Stage) -> AnyHandle:
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=AN_APP, holds="build"), cancelled)


async def cancelled_while_the_agent_works(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(holds="use"), cancelled)


async def outcome_said(stage: Stage) -> AnyHandle:
    return await no_model_is_set(stage.saying_outcomes)


PATHS: Mapping[str, Walk] = {
    "without-a-model": Walk(without_a_model, "completed reckoner can be called."),
    "by-the-agent": Walk(by_the_agent, "completed reckoner can be called."),
    "not-built-without-a-model": Walk(not_built_without_a_model, "completed reckoner can be called."),
    "in-two-rounds": Walk(in_two_rounds, "completed reckoner can be called."),
    "not-passed": Walk(not_passed, "failed No model is set."),
    "by-the-second-way": Walk(by_the_second_way, "completed reckoner can be called."),
    "not-passed-in-any-round": Walk(not_passed_in_any_round, "failed What was built did not pass the gate in 2 rounds."),
    "answered": Walk(answered, "completed"),
    "passed-by-another": Walk(passed_by_another, "completed 'echo' (version 1.0.0) does that already: it passed the"),
    "passed-by-no-other": Walk(passed_by_no_other, "completed reckoner can be called."),
    "moved": Walk(moved, "completed reckoner can be called."),
    "refused": Walk(refused, "failed There is no such repository."),
    "nothing-to-build": Walk(nothing_to_build, "failed Nothing in the repository's 0 files can be run or called;"),
    "not-registered": Walk(not_registered, "failed The id is another tool's by now."),
    "no-model-is-set": Walk(no_model_is_set, "failed No model is set."),
    "the-model-refuses": Walk(the_model_refuses, "failed No model is set."),
    "told": Walk(told, "completed reckoner can be called."),
    "malformed": Walk(malformed, "failed"),
    "cancelled-while-waiting": Walk(cancelled_while_waiting, "cancelled It was cancelled."),
    "cancelled-while-building": Walk(cancelled_while_building, "cancelled It was cancelled."),
    "cancelled-while-the-agent-works": Walk(cancelled_while_the_agent_works, "cancelled It was cancelled."),
    "outcome-said": Walk(outcome_said, "failed No model is set."),
}
