"""The agent of a task, run by run: a child workflow that hears messages to the task, and ends before its files are cleared."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

from toolagent.client import names
from toolagent.contracts.making import Guidance
from toolagent_service.agents.loop import MOST_HEARD
from toolagent_service.contracts.agent import AgentRequest, AgentResult
from toolagent_service.contracts.making_steps import AgentStart, Slot
from workflows import making_options as options
from workflows.cancelling import raise_if_cancelled
from workflows.inputs import told_of


class AgentRuns:
    """Runs of the agent, one at a time."""

    def __init__(self) -> None:
        self._said: dict[str, Guidance] = {}
        self._heard: frozenset[str] = frozenset()
        """Ids heard by an agent in an earlier round."""
        self._tell: Callable[[Guidance], Awaitable[None]] | None = None

    async def hear(self, given: Sequence[JsonValue]) -> None:
        """Pass a message to the agent, now or when there is one. The same `id` is passed once, and only as many as the agent hears."""
        guidance = told_of(Guidance, given)
        if guidance is None or guidance.id in self._said or len(self._said) >= MOST_HEARD:
            return
        self._said[guidance.id] = guidance
        if self._tell is not None:
            await self._tell(guidance)

    async def result(self, asked: AgentRequest, slot: Slot) -> AgentResult:
        """The result of a run of the agent. Raises ApplicationError, ChildWorkflowError."""
        raise_if_cancelled()
        try:
            agent = await workflow.start_child_workflow(
                names.CODING_AGENT,
                AgentStart(request=asked, slot=slot),
                result_type=AgentResult,
                **options.coding_agent(asked.conversation_id),
            )
        except WorkflowAlreadyStartedError as error:
            taken = f"Another workflow runs on Temporal under {error.workflow_id!r}, the id of this task's agent."
            raise ApplicationError(f"{taken} Terminate it, and ask for the task again.", non_retryable=True) from error

        async def tell(guidance: Guidance) -> None:
            # The agent ignores repeated guidance. If it has ended, the next round hears the guidance.
            try:
                await agent.signal(names.GUIDE, guidance)
            except ApplicationError:
                return

        self._tell = tell
        try:
            try:
                for guidance in [one for one in self._said.values() if one.id not in self._heard]:
                    await tell(guidance)
                # A cancellation may have come during `tell`: a signal under way can swallow it.
                raise_if_cancelled()
                await workflow.wait([agent])
            except asyncio.CancelledError:
                # The agent must end before its files are cleared.
                await _cancelled(agent.id)
            result = await agent
        finally:
            self._tell = None
        self._heard = frozenset(result.state.heard)
        return result


async def _cancelled(agent_id: str) -> None:
    """Cancel the current run of the agent. Cancelling the child would reach only its first run."""
    try:
        await workflow.get_external_workflow_handle(agent_id).cancel()
    except ApplicationError:
        return  # it has ended
