"""The steps of a conversation."""

from collections.abc import Callable, Sequence

from temporalio import activity

from activities.failures import expected
from activities.faults import Faults
from engine.chats.conversations import Conversations
from toolagent.client.failures import MakingUnreachableError
from toolagent.contracts.chats import ChatMessage, ChatReply
from toolagent_service import step_names
from toolagent_service.contracts.chats import Announcement, ChatRecalled, ChatStep, TaskOutcome, TaskWatch, TurnBegun, TurnEnded


class Chats:
    """Every step is keyed by the chat and its message, so repeating it is harmless."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._faults = Faults(waits_for=(MakingUnreachableError,))

    @property
    def steps(self) -> Sequence[Callable[..., object]]:
        """The steps that take milliseconds."""
        return (self.recall_chat, self.begin_turn, self.end_turn, self.announce_task, self.rest_chat)

    @activity.defn(name=step_names.RECALL_CHAT)
    async def recall_chat(self, step: ChatStep) -> ChatRecalled:
        with self._faults.bounded(f"recall {step.chat_id}"):
            return await self._conversations.recall(step.chat_id)

    @activity.defn(name=step_names.BEGIN_TURN)
    async def begin_turn(self, message: ChatMessage) -> TurnBegun:
        with self._faults.bounded(f"begin {message.message_id}"):
            return await self._conversations.begin(message)

    @activity.defn(name=step_names.END_TURN)
    async def end_turn(self, step: TurnEnded) -> ChatReply:
        with self._faults.bounded(f"end {step.said.message_id}"):
            return await self._conversations.end(step)

    @activity.defn(name=step_names.AWAIT_TASK)
    async def await_task(self, watch: TaskWatch) -> TaskOutcome:
        """Fails with `still_running` while the task goes on; Temporal looks again."""
        with self._faults.bounded():
            outcome = await self._conversations.outcome(watch.task_id)
        if outcome is None:
            raise expected(f"The task {watch.task_id} goes on.", step_names.STILL_RUNNING)
        return outcome

    @activity.defn(name=step_names.ANNOUNCE_TASK)
    async def announce_task(self, step: Announcement) -> int:
        with self._faults.bounded(f"announce {step.outcome.task_id}"):
            return await self._conversations.announce(step)

    @activity.defn(name=step_names.REST_CHAT)
    async def rest_chat(self, step: ChatStep) -> None:
        with self._faults.bounded(f"rest {step.chat_id}"):
            await self._conversations.rest(step.chat_id)
