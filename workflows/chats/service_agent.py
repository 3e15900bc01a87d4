"""One conversation: messages are updates, answered one at a time in order; the turns are in the archive.

An `if` about conversations belongs in the rules of the role or in the archive. This module is about order, runs and ends.
"""

import asyncio
from datetime import timedelta

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from toolagent.client import names
from toolagent.contracts.chats import ChatMessage, ChatReply
from toolagent.core.chats import CHAT_CLOSED
from toolagent_service import stubs
from toolagent_service.agents.service import SERVICE, remembered
from toolagent_service.contracts.agent import AgentEnd, AgentRequest, AgentResult, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from toolagent_service.contracts.chats import (
    MOST_FOLLOWED,
    Announcement,
    AnswerAsk,
    AnsweredTurn,
    AskedTurn,
    ChatLife,
    ChatStep,
    TaskWatch,
    TurnEnded,
)
from workflows.agent_loop import AgentLoop
from workflows.chats import options
from workflows.inputs import input_of, malformed

_MOST_BYTES = 1_500_000
"""The size of a history after which a new run begins. With the messages that may wait then, it stays below 5 MB."""

_MOST_UPDATES = 1_000
"""The most updates of a run. A server may refuse more than 2,000."""

_MOST_WAITING = 8
"""The most messages that wait. Some servers take at most ten updates of a workflow at once."""

_ANSWERS = "answer-turn"


@workflow.defn(name=names.SERVICE_AGENT)
class ServiceAgent:
    @workflow.init
    def __init__(self, given: JsonValue = None, *surplus: JsonValue) -> None:
        """Takes a `ChatLife` as plain JSON; invalid input fails at once."""
        self._fault: ApplicationError | None = None
        try:
            self._life = _life_of(given, *surplus)
        except ApplicationError as fault:
            self._life, self._fault = ChatLife(chat_id="none"), fault
        self._turn = asyncio.Lock()
        self._begun = self._life.runs > 0
        self._waiting = self._updates = 0
        self._drains = self._is_closed = self._is_full = False
        self._following: dict[str, asyncio.Task[None]] = {}
        self._answering: asyncio.Task[AgentResult | AgentRequest] | None = None
        self._spoken = workflow.now()

    @workflow.run
    async def run(self, _given: JsonValue = None, *_surplus: JsonValue) -> ChatLife:
        if self._fault is not None:
            raise self._fault
        chat = names.searchable(self._life.chat_id)
        workflow.upsert_search_attributes([names.CHAT_ID.value_set(chat), names.TASK_TYPE.value_set("chat")])
        try:
            await self._recalled()
            await self._lived()
            self._drains = True
            await self._ended()
        except asyncio.CancelledError:
            # Clients that wait for an answer are told.
            self._is_closed = self._drains = True
            if self._answering is not None:
                self._answering.cancel()
            await self._ended()
        if not self._is_closed and self._is_full:
            workflow.continue_as_new(self._carried())
        await workflow.execute_local_activity(stubs.rest_chat, ChatStep(chat_id=self._life.chat_id), **options.archive("rest"))
        return self._carried()

    @workflow.update(name=names.SAY)
    async def say(self, given: JsonValue = None, *surplus: JsonValue) -> ChatReply:
        """The answer to a `ChatMessage`. A repeated message has its earlier answer, also of an earlier run."""
        message = input_of(ChatMessage, given, surplus)
        self._waiting, self._updates = self._waiting + 1, self._updates + 1
        try:
            async with self._turn:
                return await self._answered(message)
        finally:
            self._waiting -= 1
            self._rest()

    @say.validator
    def _require_message(self, given: JsonValue = None, *surplus: JsonValue) -> None:
        """A message refused here is not in the history."""
        if self._fault is not None:
            raise self._fault
        if self._drains or self._is_full:
            raise ApplicationError("This run of the chat takes no more; say it again.", type=names.CHAT_DRAINS)
        if self._waiting >= _MOST_WAITING:
            waiting = f"{_MOST_WAITING} messages of this chat wait for their answers already. Say it again when one has come."
            raise ApplicationError(waiting, type=names.CHAT_FULL)
        if input_of(ChatMessage, given, surplus).chat_id != self._life.chat_id:
            raise ApplicationError("The message is for another chat.", type="validation_error")

    @workflow.query(name=names.PROGRESS)
    def progress(self, *_: JsonValue) -> ChatLife:
        return self._carried()

    async def _recalled(self) -> None:
        """Follow the tasks again that were followed before the conversation rested, or was ended from outside."""
        if not self._begun:
            recalled = await workflow.execute_local_activity(
                stubs.recall_chat, ChatStep(chat_id=self._life.chat_id), **options.archive("recall")
            )
            turns = max(self._life.turn_count, recalled.turn_count)
            self._life = self._life.model_copy(update={"turn_count": turns, "silence_s": recalled.silence_s})
            self._follow(*recalled.following)
            self._begun = True
        self._follow(*self._life.following)

    async def _lived(self) -> None:
        """Returns when the run is long, or nothing was said for long."""
        while not self._is_full:
            await workflow.wait_condition(lambda: self._is_full or not (self._waiting or self._following))
            left = self._spoken + timedelta(seconds=self._life.silence_s) - workflow.now()
            if self._is_full or left <= timedelta():
                return
            try:
                # One timer at a time, however much is said meanwhile.
                await workflow.wait_condition(lambda: self._is_full, timeout=left)
            except TimeoutError:
                continue

    async def _ended(self) -> None:
        """Returns when no message waits, and no turn is being written."""
        await workflow.wait_condition(lambda: self._waiting == 0 and not self._turn.locked() and workflow.all_handlers_finished())

    async def _answered(self, message: ChatMessage) -> ChatReply:
        begun = await workflow.execute_local_activity(stubs.begin_turn, message, **options.archive("message"))
        match begun:
            case AnsweredTurn(reply=reply):
                pass
            case AskedTurn(number=number, request=request):
                reply = await self._asked(message, number, request)
        changed = {"turn_count": max(begun.number + 1, self._life.turn_count), "tools": remembered(self._life.tools, reply.tools)}
        self._life = self._life.model_copy(update=changed)
        self._follow(*reply.task_ids)
        workflow.set_current_details(f"{self._life.turn_count} turns, {len(self._following)} tasks under way")
        return reply

    async def _asked(self, message: ChatMessage, number: int, request: AgentRequest) -> ChatReply:
        """The reply of the agent, or one with an error: the conversation goes on after a failed answer."""
        told: list[ToolNote] = []
        reply: ChatReply | None = None

        def ended(position: int, error: str = "") -> TurnEnded:
            return TurnEnded(
                said=message.model_copy(update={"message": ""}),
                number=number,
                conversation_id=request.conversation_id,
                position=position,
                tools=remembered((), *(note.tool_ids for note in told)),
                known_tools=self._life.tools,
                task_ids=tuple(dict.fromkeys(task_id for note in told for task_id in note.task_ids)),
                error=error,
            )

        async def ask(step: ModelAsk) -> ModelTurnNote:
            nonlocal reply
            if not workflow.patched(_ANSWERS):
                return await workflow.execute_activity(stubs.ask_model, step, **options.ask_model(number, step.turn, agent.left()))
            how = options.answer_turn(number, step.turn, agent.left())
            answer = await workflow.execute_activity(stubs.answer_turn, AnswerAsk(ask=step, ended=ended(step.position + 1)), **how)
            reply = answer.reply
            return answer.note

        async def use(step: ToolRun) -> ToolNote:
            note = await workflow.execute_activity(stubs.use_tool, step, **options.use_tool(step.summary))
            told.append(note)
            return note

        agent = AgentLoop(SERVICE, request, ask, use, whole=True)
        self._answering, error = asyncio.create_task(agent.result()), ""
        try:
            result = await self._answering
            if isinstance(result, AgentResult) and result.end is not AgentEnd.DONE:
                error = result.reason
        except (ActivityError, asyncio.CancelledError) as failure:
            error = CHAT_CLOSED if is_cancelled_exception(failure) else f"A function did not work: {failure.__cause__ or failure}"
        finally:
            self._answering = None
        if reply is not None:
            return reply
        return await workflow.execute_local_activity(stubs.end_turn, ended(agent.state.position, error), **options.archive("answer"))

    def _follow(self, *task_ids: str) -> None:
        for task_id in task_ids:
            if task_id not in self._following and len(self._following) < MOST_FOLLOWED:
                self._following[task_id] = asyncio.create_task(self._followed(task_id))

    async def _followed(self, task_id: str) -> None:
        """Wait for the end of a task, and announce it in the chat."""
        outcome = await workflow.execute_activity(stubs.await_task, TaskWatch(task_id=task_id), **options.await_task(task_id))
        async with self._turn:
            step = Announcement(chat_id=self._life.chat_id, outcome=outcome)
            turns = await workflow.execute_local_activity(stubs.announce_task, step, **options.archive(f"{task_id} {outcome.status}"))
            known = remembered(self._life.tools, outcome.tool_ids)
            self._life = self._life.model_copy(update={"turn_count": max(turns, self._life.turn_count), "tools": known})
            self._following.pop(task_id, None)
            self._rest()

    def _carried(self) -> ChatLife:
        return self._life.model_copy(update={"following": tuple(self._following), "runs": self._life.runs + 1})

    def _rest(self) -> None:
        """Called after a turn, not where messages are refused: a workflow task of refusals alone does not wake the run."""
        if not workflow.in_workflow():
            return  # the worker has ended, and Python closes the coroutines of this run outside of Temporal's loop
        info = workflow.info()
        is_long = info.get_current_history_length() >= self._life.events or info.get_current_history_size() >= _MOST_BYTES
        self._is_full = self._is_full or is_long or self._updates >= _MOST_UPDATES or info.is_continue_as_new_suggested()
        self._spoken = workflow.now()


def _life_of(given: JsonValue, *surplus: JsonValue) -> ChatLife:
    """Raises ApplicationError if the chat has another workflow id: the archive is keyed by the chat's id."""
    life = input_of(ChatLife, given, surplus)
    if workflow.info().workflow_id != names.chat_workflow(life.chat_id):
        own = f"the id of the workflow ({workflow.info().workflow_id!r}) must be {names.chat_workflow(life.chat_id)!r}"
        raise malformed(f"chat_id: {own}.")
    return life
