"""The end of an agent whose model does not answer: on a real Temporal server with scripted steps."""

import uuid
from datetime import timedelta

from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from tests.workflows.agent_paths import EVENTS_OF_A_STEP
from tests.workflows.making_steps import MakingSteps, turn
from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.agent import AgentEnd, AgentLimits, AgentRequest, AgentResult, ToolUseNote
from toolagent_service.contracts.making_steps import AgentStart, Slot
from workflows.making.coding_agent import CodingAgent

LIFE = timedelta(seconds=60)
OVER = "The time of 1 s is over. Give more with limits.wall_s."


async def ended(client: Client, steps: MakingSteps, limits: AgentLimits, task_id: str = "") -> AgentResult:
    queue, task_id = step_names.making_queue(steps.host), task_id or f"task-{uuid.uuid4().hex[:8]}"
    start = AgentStart(request=AgentRequest(conversation_id=task_id, prompt="coding", limits=limits), slot=Slot(host=steps.host))
    async with Worker(client, task_queue=queue, workflows=[CodingAgent], activities=steps.all):
        return await client.execute_workflow(
            names.CODING_AGENT, start, id=names.coding_id(task_id), task_queue=queue, result_type=AgentResult, execution_timeout=LIFE
        )


def failure(message: str, *details: str, kind: str) -> ApplicationError:
    return ApplicationError(
        message, *details, type=kind, non_retryable=kind == step_names.MODEL_REFUSED, category=ApplicationErrorCategory.BENIGN
    )


async def test_a_model_that_thinks_until_the_time_is_over_ends_the_agent_by_its_time(temporal: Client) -> None:
    result = await ended(temporal, MakingSteps(holds="ask"), AgentLimits(wall_s=1))
    assert (result.end, result.reason) == (AgentEnd.WALL_TIME, OVER)


async def test_one_that_is_busy_until_then_says_so(temporal: Client) -> None:
    busy = failure("The model is overloaded.", "overloaded", kind=step_names.MODEL_BUSY)
    result = await ended(temporal, MakingSteps(turns={1: busy}), AgentLimits(wall_s=1))
    assert (result.end, result.reason) == (AgentEnd.WALL_TIME, f"{OVER} The model had not answered until then: The model is overloaded.")


async def test_money_that_broken_off_answers_used_up_is_the_end_of_the_money(temporal: Client) -> None:
    spent = failure("The model's answer broke off twice.", AgentEnd.MONEY.value, kind=step_names.MODEL_REFUSED)
    result = await ended(temporal, MakingSteps(turns={1: spent}), AgentLimits())
    assert (result.end, result.reason) == (AgentEnd.MONEY, "The model's answer broke off twice.")


async def test_a_model_that_refuses_to_be_asked_ends_it_by_the_model(temporal: Client) -> None:
    refused = failure("The key is not known.", "unauthenticated", kind=step_names.MODEL_REFUSED)
    result = await ended(temporal, MakingSteps(turns={1: refused}), AgentLimits())
    assert (result.end, result.reason) == (AgentEnd.MODEL, "The key is not known.")


async def test_one_whose_history_is_long_goes_on_in_another_run_with_what_it_knows(temporal: Client) -> None:
    writes = {number: turn(ToolUseNote(id=f"use-{number}", name="write_file", summary="", input_digest=str(number))) for number in (1, 2)}
    task_id = f"task-{uuid.uuid4().hex[:8]}"
    result = await ended(temporal, MakingSteps(turns=writes), AgentLimits(events=EVENTS_OF_A_STEP), task_id)
    assert (result.end, result.product, result.state.turns) == (AgentEnd.DONE, "candidate-use-3", 3)
    assert (result.state.tokens, round(result.state.cost_usd, 2)) == (3 * 1_100, 0.03)
    history = await temporal.get_workflow_handle(names.coding_id(task_id)).fetch_history()
    assert history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
