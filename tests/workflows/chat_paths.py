"""The paths of a conversation, with an archive and a model that act as the messages say."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tests.workflows.ends import Walk
from tests.workflows.making_steps import turn
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.chats import AnsweredBy, ChatMessage, ChatReply
from toolagent.contracts.tasks import TaskState
from toolagent_service import step_names
from toolagent_service.contracts.agent import SERVICE, AgentRequest, ModelAsk, ModelTurnNote, ToolNote, ToolRun, ToolUseNote
from toolagent_service.contracts.chats import (
    Announcement,
    AnswerAsk,
    AnsweredTurn,
    AnswerNote,
    AskedTurn,
    ChatLife,
    ChatRecalled,
    ChatStep,
    TaskOutcome,
    TaskWatch,
    TurnBegun,
    TurnEnded,
)

__all__ = ["PATHS", "Archive", "life_of", "message", "served", "talked"]

BENIGN = ApplicationErrorCategory.BENIGN
TASK = "create_0a1b2c3d"
SUBMIT = ToolUseNote(id="use-submit", name="submit_task", summary="submit", input_digest="1")
REACHED_S = 60
BEAT = timedelta(seconds=0.2)


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class Archive:
    """Messages by id, and announcements of tasks. A message with `model` in it goes to the model."""

    silence_s: float = 300.0
    following: tuple[str, ...] = ()
    said: dict[str, ChatReply] = field(default_factory=dict[str, ChatReply])
    order: list[str] = field(default_factory=list[str])
    done: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What was begun for the model, and ended, with the id of the message."""
    announced: list[str] = field(default_factory=list[str])
    rested: int = 0
    recalled: asyncio.Event = field(default_factory=asyncio.Event)
    """Once it is set, a message is no part of the first workflow task any more."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=_set)
    told: asyncio.Event = field(default_factory=asyncio.Event)
    """The end of a task."""

    @property
    def steps(self) -> list[Callable[..., object]]:
        return [self.recall_chat, self.begin_turn, self.end_turn, self.announce_task, self.rest_chat]

    @activity.defn(name=step_names.RECALL_CHAT)
    async def recall_chat(self, _: ChatStep) -> ChatRecalled:
        self.recalled.set()
        return ChatRecalled(turn_count=len(self.order), following=self.following, silence_s=self.silence_s)

    @activity.defn(name=step_names.BEGIN_TURN)
    async def begin_turn(self, said: ChatMessage) -> TurnBegun:
        if said.message_id in self.said:
            return AnsweredTurn(number=1, reply=self.said[said.message_id])
        self.order.append(said.message)
        self.reached.set()
        await self.may_answer.wait()
        number = 2 * len(self.order) - 1
        if "model" in said.message:
            conversation = f"{said.message}:{number}"
            self.done.append(("begun", said.message_id))
            return AskedTurn(number=number, request=AgentRequest(conversation_id=conversation, prompt="service", role=SERVICE))
        return AnsweredTurn(number=number, reply=self._reply(said, "By rules."))

    @activity.defn(name=step_names.END_TURN)
    async def end_turn(self, step: TurnEnded) -> ChatReply:
        self.done.append(("ended", step.said.message_id))
        return self._reply(step.said, step.error or f"At {step.position}.", step)

    @activity.defn(name=step_names.ANNOUNCE_TASK)
    async def announce_task(self, step: Announcement) -> int:
        self.announced.append(step.outcome.task_id)
        self.told.set()
        return 2 * len(self.order) + len(self.announced)

    @activity.defn(name=step_names.REST_CHAT)
    async def rest_chat(self, _: ChatStep) -> None:
        self.rested += 1

    def _reply(self, said: ChatMessage, text: str, step: TurnEnded | None = None) -> ChatReply:
        by = AnsweredBy.MODEL if step else AnsweredBy.RULES
        task_ids = step.task_ids if step else ()
        reply = ChatReply(response=text, chat_id=said.chat_id, message_id=said.message_id, task_ids=task_ids, answered_by=by)
        return self.said.setdefault(said.message_id, reply)


@activity.defn(name=step_names.ASK_MODEL)
async def ask_model(ask: ModelAsk) -> ModelTurnNote:
    """First submits a task if the message asks for one; never answers if it says to wait."""
    if "waits" in ask.conversation_id:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.1)
    if "refused" in ask.conversation_id:
        raise ApplicationError("No model is set.", type=step_names.MODEL_REFUSED, non_retryable=True, category=BENIGN)
    return turn(SUBMIT) if "makes" in ask.conversation_id and ask.turn == 1 else turn(stop_reason="end_turn", said="It is so.")


@activity.defn(name=step_names.ANSWER_TURN)
async def answer_turn(step: AnswerAsk) -> AnswerNote:
    """Records the answer itself if the message says so."""
    said, note = step.ended.said, await ask_model(step.ask)
    reply = ChatReply(response="At once.", chat_id=said.chat_id, message_id=said.message_id)
    return AnswerNote(note=note, reply=reply if "at once" in step.ask.conversation_id else None)


@activity.defn(name=step_names.USE_TOOL)
async def use_tool(run: ToolRun) -> ToolNote:
    if "breaks" in run.conversation_id:
        raise ApplicationError("The table is gone.", non_retryable=True, category=BENIGN)
    return ToolNote(tool_use_id=run.tool_use_id, name=run.name, digest="1", size=10, task_ids=(TASK,))


@activity.defn(name=step_names.AWAIT_TASK)
async def await_task(watch: TaskWatch) -> TaskOutcome:
    return TaskOutcome(task_id=watch.task_id, tool_id="tally", status=TaskState.COMPLETED, tool_ids=("tally",))


def served(client: Client) -> Worker:
    """The model and its functions of all chats, because a process has one worker for a queue."""
    steps = [ask_model, answer_turn, use_tool, await_task]
    return Worker(client, task_queue=names.CHATS_QUEUE, activities=steps, max_heartbeat_throttle_interval=BEAT)


def life_of(stage: Stage, **more: object) -> ChatLife:
    return ChatLife.model_validate({"chat_id": stage.queue, **more})


def message(stage: Stage, text: str, message_id: str = "msg-1") -> ChatMessage:
    return ChatMessage(chat_id=stage.queue, message=text, message_id=message_id)


async def talked(stage: Stage, archive: Archive, *texts: str, life: ChatLife | None = None, tells: bool = False) -> AnyHandle:
    """One message after the other, then the chat is closed; with `tells`, after it has announced the end of a task."""
    async with stage.workers(archive.steps):
        handle = await stage.start(names.SERVICE_AGENT, life or life_of(stage), workflow_id=names.chat_workflow(stage.queue))
        if texts:
            await asyncio.wait_for(archive.recalled.wait(), REACHED_S)
        for number, text in enumerate(texts, start=1):
            await said(handle, message(stage, text, f"msg-{number}"))
        if tells:
            await asyncio.wait_for(archive.told.wait(), REACHED_S)
        if texts:
            await handle.cancel()
        await handle.result()
    return handle


async def said(handle: AnyHandle, what: ChatMessage) -> ChatReply:
    """Sends as the client does: again if the chat goes on in a new run."""
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(WorkflowUpdateFailedError), stop=stop_after_delay(REACHED_S), wait=wait_fixed(0.1)
    ):
        with attempt:
            return await handle.execute_update(names.SAY, what, id=what.message_id, result_type=ChatReply)
    raise AssertionError("tenacity ended without an outcome")


async def cancelled(stage: Stage) -> AnyHandle:
    """While the model thinks; another message waits."""
    archive = Archive()
    async with stage.workers(archive.steps):
        handle = await stage.start(names.SERVICE_AGENT, life_of(stage), workflow_id=names.chat_workflow(stage.queue))
        await asyncio.wait_for(archive.recalled.wait(), REACHED_S)
        answer = asyncio.create_task(said(handle, message(stage, "model waits")))
        await asyncio.wait_for(archive.reached.wait(), REACHED_S)
        await handle.cancel()
        assert "closed" in (await answer).response
        await handle.result()
    return handle


async def not_its_own(stage: Stage) -> AnyHandle:
    async with stage.workers(Archive().steps):
        handle = await stage.start(names.SERVICE_AGENT, ChatLife(chat_id="another"), workflow_id=names.chat_workflow(stage.queue))
        await asyncio.gather(handle.result(), return_exceptions=True)
    return handle


PATHS: Mapping[str, Walk] = {
    "silent": Walk(lambda stage: talked(stage, Archive(silence_s=1.0)), ""),
    "by-rules": Walk(lambda stage: talked(stage, Archive(), "Which tools?", "Thanks."), ""),
    "makes-a-tool": Walk(lambda stage: talked(stage, Archive(), "model makes", tells=True), ""),
    "answered-at-once": Walk(lambda stage: talked(stage, Archive(), "model at once", "model"), ""),
    "the-model-refuses": Walk(lambda stage: talked(stage, Archive(), "model refused", "Which tools?"), ""),
    "a-function-breaks": Walk(lambda stage: talked(stage, Archive(), "model makes, breaks"), ""),
    "revived": Walk(lambda stage: talked(stage, Archive(silence_s=1.0, following=(TASK,))), ""),
    "goes-on": Walk(lambda stage: talked(stage, Archive(), life=life_of(stage, runs=1, following=(TASK,), silence_s=1.0)), ""),
    "cancelled": Walk(cancelled, ""),
    "not-its-own": Walk(not_its_own, "failed"),
}
