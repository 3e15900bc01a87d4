"""The paths of repairing a tool.

The agent's work and its guidance are as in making one.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from tests.workflows.ends import Walk
from tests.workflows.making_stage import While, cancelled, guided, play_task
from tests.workflows.making_steps import MakingSteps
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent_service.contracts.making_steps import Diagnosis, Registered

__all__ = ["PATHS"]

BROKEN: JsonValue = {"type": "repair_tool", "tool_id": "reckoner", "error": "HTTP 500"}
NOT_PASSED = "recorded calls: 1 of 2 calls were answered as before."


async def play_repair(stage: Stage, steps: MakingSteps, during: While | None = None) -> AnyHandle:
    return await play_task(stage, names.REPAIR_TOOL, BROKEN, steps, during)


async def mended(stage: Stage) -> AnyHandle:
    return await play_repair(stage, MakingSteps())


async def in_two_rounds(stage: Stage) -> AnyHandle:
    return await play_repair(stage, MakingSteps(faults=(NOT_PASSED, "")))


async def not_passed(stage: Stage) -> AnyHandle:
    return await play_repair(stage, MakingSteps(faults=(NOT_PASSED, NOT_PASSED)))


async def refused(stage: Stage) -> AnyHandle:
    """The tool cannot be repaired here."""
    return await play_repair(stage, MakingSteps(found=Diagnosis(refused="It is a service somewhere else.")))


async def not_taken_over(stage: Stage) -> AnyHandle:
    return await play_repair(stage, MakingSteps(registered=Registered(refused="Meanwhile there is 1.3.0.")))


async def told(stage: Stage) -> AnyHandle:
    return await play_repair(stage, MakingSteps(holds="ask"), guided)


async def cancelled_while_the_agent_works(stage: Stage) -> AnyHandle:
    return await play_repair(stage, MakingSteps(holds="use"), cancelled)


async def malformed(stage: Stage) -> AnyHandle:
    return await play_task(stage, names.REPAIR_TOOL, None, MakingSteps())


PATHS: Mapping[str, Walk] = {
    "mended": Walk(mended, "completed 'reckoner' is mended. Version 1.2.0 stays, for a rollback."),
    "in-two-rounds": Walk(in_two_rounds, "completed 'reckoner' is mended. Version 1.2.0 stays, for a rollback."),
    "not-passed": Walk(not_passed, "failed What was built did not pass the gate in 2 rounds."),
    "refused": Walk(refused, "failed It is a service somewhere else."),
    "not-taken-over": Walk(not_taken_over, "failed Meanwhile there is 1.3.0."),
    "told": Walk(told, "completed 'reckoner' is mended. Version 1.2.0 stays, for a rollback."),
    "cancelled-while-the-agent-works": Walk(cancelled_while_the_agent_works, "cancelled It was cancelled."),
    "malformed": Walk(malformed, "failed"),
}
