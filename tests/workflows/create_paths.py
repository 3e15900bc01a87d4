"""The paths of making a tool."""

from collections.abc import Awaitable, Callable, Mapping

from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType

from tests.workflows.making_stage import While, after_event, cancelled, guided, no_model, play_task
from tests.workflows.making_steps import MOVED, WAITING, MakingSteps
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.making import Finding, FindingKind, Inspection
from toolagent_service.contracts.making_steps import BuildOutcome, Inspected, Registered, Taker

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
    """By what was built, and there is no model that could do better."""
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=AN_APP, faults=(NOT_PASSED,), turns={0: no_model()}))


async def by_the_second_way(stage: Stage) -> AnyHandle:
    """What was built of the first app does not pass; the second one does."""
    return await play_create(stage, REPOSITORY, MakingSteps(inspected=TWO_APPS, faults=(NOT_PASSED, "")))


async def not_passed_in_any_round(stage: Stage) -> AnyHandle:
    return await play_create(stage, WORDS, MakingSteps(faults=(NOT_PASSED, NOT_PASSED)))


async def answered(stage: Stage) -> AnyHandle:
    """There is a tool that does it."""
    return await play_create(stage, WORDS, MakingSteps(inspected=Inspected(answered_by="reckoner")))


async def passed_by_another(stage: Stage) -> AnyHandle:
    """Two tools that are there are tried with the example; the second one does what it says."""
    takers = (Taker(tool_id="broken", version="1.0.0"), Taker(tool_id="echo", version="1.0.0"))
    return await play_create(stage, WITH_AN_EXAMPLE, MakingSteps(inspected=Inspected(takers=takers)))


async def passed_by_no_other(stage: Stage) -> AnyHandle:
    takers = (Taker(tool_id="broken", version="1.0.0"),)
    return await play_create(stage, WITH_AN_EXAMPLE, MakingSteps(inspected=Inspected(takers=takers)))


async def moved(stage: Stage) -> AnyHandle:
    """Its host dies before it begins; another one takes it."""
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
    """Somebody says something while the agent is at work."""
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


PATHS: Mapping[str, Callable[[Stage], Awaitable[AnyHandle]]] = {
    "without-a-model": without_a_model,
    "by-the-agent": by_the_agent,
    "not-built-without-a-model": not_built_without_a_model,
    "in-two-rounds": in_two_rounds,
    "not-passed": not_passed,
    "by-the-second-way": by_the_second_way,
    "not-passed-in-any-round": not_passed_in_any_round,
    "answered": answered,
    "passed-by-another": passed_by_another,
    "passed-by-no-other": passed_by_no_other,
    "moved": moved,
    "refused": refused,
    "nothing-to-build": nothing_to_build,
    "not-registered": not_registered,
    "no-model-is-set": no_model_is_set,
    "the-model-refuses": the_model_refuses,
    "told": told,
    "malformed": malformed,
    "cancelled-while-waiting": cancelled_while_waiting,
    "cancelled-while-building": cancelled_while_building,
    "cancelled-while-the-agent-works": cancelled_while_the_agent_works,
    "outcome-said": outcome_said,
}
