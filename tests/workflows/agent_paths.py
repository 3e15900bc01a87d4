"""The paths of the coding agent, which also others than tasks may start."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from temporalio.api.enums.v1 import EventType

from tests.workflows.ends import Walk
from tests.workflows.making_stage import While, after_event, cancelled, no_model, say
from tests.workflows.making_steps import PATIENCE_S, MakingSteps, turn
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.agent import AgentLimits, AgentRequest, LoopState, ToolUseNote
from toolagent_service.contracts.making_steps import AgentStart, Slot

__all__ = ["EVENTS_OF_A_STEP", "PATHS", "WRITE"]

WRITE = ToolUseNote(id="use-write", name="write_file", summary="write main.py", input_digest="1")
READ = ToolUseNote(id="use-read", name="read_file", summary="read main.py", input_digest="2")
UNKNOWN = ToolUseNote(id="use-unknown", name="fly", summary="fly", input_digest="3", fault="There is no tool 'fly'.")
REACHED_S = 100
EVENTS_OF_A_STEP = 8
"""A run that may have no more does one step: the next one is another run's."""
LONG_S = 150.0
"""As patience with a host that is alive."""

IDLE = turn(stop_reason="end_turn", said="Done.")
UNBOUNDED = AgentLimits()


async def play_agent(
    stage: Stage,
    steps: MakingSteps,
    during: While | None = None,
    *,
    limits: AgentLimits = UNBOUNDED,
    state: LoopState | None = None,
    ends_well: bool = True,
) -> AnyHandle:
    task_id, host = f"task-{stage.queue}", f"host-{stage.queue}"
    request = AgentRequest(conversation_id=task_id, prompt="coding", limits=limits, resume_from=state)
    own = Stage(stage.client, step_names.making_queue(host))
    async with own.workers(steps.all):
        slot = Slot(host=host, patience_s=LONG_S)
        handle = await own.start(names.CODING_AGENT, AgentStart(request=request, slot=slot), workflow_id=names.coding_id(task_id))
        if during is not None:
            await during(handle, steps)
        await asyncio.gather(handle.result(), return_exceptions=not ends_well)
    return handle


async def registered(stage: Stage) -> AnyHandle:
    """Two uses and one of an unknown function, then a candidate."""
    return await play_agent(stage, MakingSteps(turns={1: turn(WRITE, UNKNOWN, WRITE.model_copy(update={"id": "use-again"}))}))


async def goes_on(stage: Stage) -> AnyHandle:
    """With the state of an earlier run, or of an earlier round."""
    now = datetime.now(UTC).timestamp()
    state = LoopState(started_s=now, turns=3, position=6, tokens=100, pending=(WRITE,), round=2, remarks=("It did not pass.",))
    return await play_agent(stage, MakingSteps(), state=state)


async def gave_up(stage: Stage) -> AnyHandle:
    return await play_agent(stage, MakingSteps(turns=dict.fromkeys(range(1, 9), IDLE)))


async def out_of_turns(stage: Stage) -> AnyHandle:
    return await play_agent(stage, MakingSteps(turns={1: turn(WRITE)}), limits=AgentLimits(turns=1))


async def the_model_refuses(stage: Stage) -> AnyHandle:
    return await play_agent(stage, MakingSteps(turns={1: no_model()}))


async def a_use_breaks(stage: Stage) -> AnyHandle:
    """The failure is the service's, not the model's: the run fails."""
    return await play_agent(stage, MakingSteps(turns={1: turn(READ)}), ends_well=False)


async def host_lost(stage: Stage) -> AnyHandle:
    """No worker takes its steps any more, and its files are on that host only: the run fails."""
    task_id = f"task-{stage.queue}"
    async with stage.workers(MakingSteps().all):
        request = AgentRequest(conversation_id=task_id, prompt="coding")
        start = AgentStart(request=request, slot=Slot(host=f"host-{stage.queue}", patience_s=PATIENCE_S))
        handle = await stage.start(names.CODING_AGENT, start, workflow_id=names.coding_id(task_id))
        await asyncio.gather(handle.result(), return_exceptions=True)
    return handle


async def told(stage: Stage) -> AnyHandle:
    """A person says the same twice while the model thinks."""

    async def twice(handle: AnyHandle, steps: MakingSteps) -> None:
        await asyncio.wait_for(steps.reached.wait(), REACHED_S)
        await say(handle)
        await say(handle)
        await after_event(handle, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
        steps.released.set()

    return await play_agent(stage, MakingSteps(turns={1: turn(WRITE)}, holds="ask"), twice)


async def told_and_cancelled_in_its_second_run(stage: Stage) -> AnyHandle:
    """The first run has asked the model, and is too long by then."""

    async def spoken_to(handle: AnyHandle, steps: MakingSteps) -> None:
        await asyncio.wait_for(steps.reached.wait(), REACHED_S)
        await say(handle)
        await after_event(handle, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
        await handle.cancel()

    steps = MakingSteps(turns={1: turn(WRITE)}, holds="use")
    return await play_agent(stage, steps, spoken_to, limits=AgentLimits(events=EVENTS_OF_A_STEP), ends_well=False)


async def cancelled_while_the_model_thinks(stage: Stage) -> AnyHandle:
    return await play_agent(stage, MakingSteps(holds="ask"), cancelled, ends_well=False)


async def cancelled_while_a_tool_works(stage: Stage) -> AnyHandle:
    return await play_agent(stage, MakingSteps(holds="use"), cancelled, ends_well=False)


PATHS: Mapping[str, Walk] = {
    "registered": Walk(registered, "registered register"),
    "goes-on": Walk(goes_on, "registered register"),
    "gave-up": Walk(gave_up, "gave_up The model stopped without"),
    "out-of-turns": Walk(out_of_turns, "turns All 1 turns are used. Give more with limits.turns."),
    "the-model-refuses": Walk(the_model_refuses, "model No model is set."),
    "a-use-breaks": Walk(a_use_breaks, "failed"),
    "host-lost": Walk(host_lost, "failed"),
    "told": Walk(told, "registered register"),
    "told-and-cancelled-in-its-second-run": Walk(told_and_cancelled_in_its_second_run, "canceled"),
    "cancelled-while-the-model-thinks": Walk(cancelled_while_the_model_thinks, "canceled"),
    "cancelled-while-a-tool-works": Walk(cancelled_while_a_tool_works, "canceled"),
}
