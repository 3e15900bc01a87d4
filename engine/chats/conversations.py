"""Records a chat turn by turn, in idempotent steps."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncConnection

from engine.chats.spoken import not_begun, spoken
from engine.chats.submissions import SubmissionRefused, Submissions
from engine.store.chats import ChatTable
from engine.store.messages import MessageTable
from engine.store.rows.chat_rows import reply_of
from engine.store.tasks import TaskTable
from engine.tasks.transcript import Also, AlsoWritten
from toolagent.contracts.chats import AnsweredBy, ChatMessage, ChatReply, ChatRole, ChatTurn, Chunk
from toolagent.contracts.tasks import TaskState
from toolagent.core.chats import task_message_id
from toolagent.core.failures import ContentMissingError
from toolagent.core.texts import well_formed
from toolagent_service.agents import service
from toolagent_service.agents.loop import is_answer
from toolagent_service.agents.service import SERVICE
from toolagent_service.contracts.agent import AgentRequest, ModelTurnNote
from toolagent_service.contracts.chats import (
    Announcement,
    AnsweredTurn,
    AskedTurn,
    ChatRecalled,
    TaskOutcome,
    TurnBegun,
    TurnEnded,
)
from toolagent_service.contracts.concierge import Earlier, Reply
from toolagent_service.contracts.model import Block, ModelTurn, Text

_REMEMBERED = 100
"""Earlier turns that a message may refer to."""

Requested = Callable[[str], Awaitable[AgentRequest]]
"""Makes the request for an answer of the model."""

NO_MODEL = (
    "No model is set, and nothing here answers by rules: I cannot answer. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or "
    "TOOL_AGENT_MODEL_BASE_URL). Meanwhile POST /search_tools finds tools, GET /tools lists them, and POST /create_tool has one made."
)


class Concierge(Protocol):
    """Answers without a model; `engine.concierge.concierge.Concierge` is one."""

    async def answer(self, message: str, *, recall: Callable[[], Awaitable[Earlier]]) -> Reply:
        """`recall` gives the chat before the message."""
        ...


@dataclass(frozen=True, slots=True)
class ChatParts:
    """`concierge` answers if no model is set. None: no one does."""

    chats: ChatTable
    messages: MessageTable
    tasks: TaskTable
    submissions: Submissions
    concierge: Concierge | None = None


class Answering(AlsoWritten):
    """Writes the answer of one attempt in the transaction of its model turn. `answer` makes it from the turn."""

    def __init__(self, chats: ChatTable, chat_id: str, answer: Callable[[ModelTurn], ChatTurn]) -> None:
        self._chats, self._chat_id, self._answer = chats, chat_id, answer
        self.reply: ChatReply | None = None
        """The written reply; None if another attempt wrote it, or the write failed."""

    def __call__(self, note: ModelTurnNote, turn: ModelTurn, unheard: Sequence[Chunk]) -> Also | None:
        async def write(connection: AsyncConnection) -> None:
            self.reply = reply_of(self._chat_id, await self._chats.answer_within(connection, self._chat_id, self._answer(turn), unheard))

        return write if is_answer(SERVICE, note) else None

    def undone(self) -> None:
        self.reply = None


class Conversations:
    """`requested` is None if no model is set. Every method raises StoreUnavailableError."""

    def __init__(self, parts: ChatParts, requested: Requested | None, silence_s: float) -> None:
        self._parts, self._requested, self._silence_s = parts, requested, silence_s
        self._chats = parts.chats

    async def recall(self, chat_id: str) -> ChatRecalled:
        known = await self._chats.get(chat_id)
        following = await self._chats.unended_tasks(chat_id) if known else ()
        return ChatRecalled(turn_count=known.turn_count if known else 0, following=following, silence_s=self._silence_s)

    async def begin(self, message: ChatMessage) -> TurnBegun:
        """Records the message once, and answers it if rules do."""
        if self._requested is None:
            return await self._by_rules(message)
        said = await self._chats.say(message.chat_id, message.message_id, message.message)
        if said.reply is not None:
            return AnsweredTurn(number=said.turn.number, reply=said.reply)
        return AskedTurn(number=said.turn.number, request=await self._requested(said.conversation_id))

    async def end(self, ended: TurnEnded, answer: ModelTurn | None = None) -> ChatReply:
        """Records the answer. Reads it if it is not given."""
        chat_id, text = ended.said.chat_id, ""
        if answer is not None:
            text = _text_of(answer.content)
        elif not ended.error:
            text = await self._said(ended.conversation_id or await self._chats.conversation(chat_id, ended.number), ended.position)
        return reply_of(chat_id, await self._chats.answer(chat_id, _answering(ended, text)))

    def answering(self, ended: TurnEnded) -> Answering:
        """Like `end`, in the transaction of the model turn."""
        return Answering(self._chats, ended.said.chat_id, lambda turn: _answering(ended, _text_of(turn.content)))

    async def outcome(self, task_id: str) -> TaskOutcome | None:
        """How a task ended; None while it runs. An unknown task has ended: it was recorded when it began, and then forgotten."""
        task = await self._parts.tasks.get(task_id)
        if task is None:
            return service.forgotten(task_id)
        if task.ended_at is None:
            return None
        return TaskOutcome(task_id=task_id, tool_id=task.tool_id, status=task.status, tool_ids=task.tool_ids, reason=task.reason[:4_000])

    async def announce(self, step: Announcement) -> int:
        """Tells the chat how a task ended. Returns the number of the turn."""
        outcome = step.outcome
        text = well_formed(service.announced(outcome, await self._wish_of(step.chat_id, outcome.task_id)))
        said = _turn(task_message_id(outcome.task_id), text, AnsweredBy.RULES, outcome.tool_ids)
        return (await self._chats.answer(step.chat_id, said, ends=False)).number

    async def _wish_of(self, chat_id: str, task_id: str) -> str:
        """The message that began the task; empty if it is long ago."""
        turns = await self._chats.turns(chat_id, limit=_REMEMBERED)
        began = {turn.message_id for turn in turns if task_id in turn.task_ids}
        return next((turn.text for turn in turns if turn.role is ChatRole.USER and turn.message_id in began), "")

    async def rest(self, chat_id: str) -> None:
        await self._chats.rest(chat_id)

    async def _by_rules(self, message: ChatMessage) -> AnsweredTurn:
        """Records the message together with its answer, or first if it begins a task."""
        known = {turn.role: turn for turn in await self._chats.of_message(message.chat_id, message.message_id)}
        if ChatRole.ASSISTANT in known:
            return AnsweredTurn(number=known[ChatRole.USER].number, reply=reply_of(message.chat_id, known[ChatRole.ASSISTANT]))
        text, tools, task_ids, error = NO_MODEL, (), (), "no model"
        if self._parts.concierge is not None:
            asked = known.get(ChatRole.USER)
            recall = partial(self._earlier, message.chat_id, asked.number if asked else None)
            ruled = await self._parts.concierge.answer(message.message, recall=recall)
            text, tools, error = spoken(ruled), ruled.tool_ids, ""
            if ruled.task is not None:
                await self._chats.say(message.chat_id, message.message_id, message.message)
                try:
                    task_ids = (await self._parts.submissions.submit(message.chat_id, ruled.task, message.message_id),)
                    text = spoken(ruled.about_task(task_ids[0], TaskState.PENDING))
                except SubmissionRefused as refused:
                    text, error = not_begun(str(refused), ruled.language), str(refused)
        answer = _turn(message.message_id, well_formed(text), AnsweredBy.RULES, tools, task_ids, error)
        said, reply = await self._chats.exchange(message.chat_id, message.message, answer)
        return AnsweredTurn(number=said.number, reply=reply)

    async def _earlier(self, chat_id: str, before: int | None) -> Earlier:
        """The chat before the turn with this number; None: before a message that is not recorded yet."""
        turns = (await self._chats.turns(chat_id, before=before, limit=_REMEMBERED))[::-1]
        ruled = [turn.message_id for turn in turns[:1] if turn.answered_by is AnsweredBy.RULES and not turn.task_ids]
        return Earlier(
            tools=next((turn.tools for turn in turns if turn.tools), ()),
            listed=next((turn.tools for turn in turns if len(turn.tools) > 1), ()),
            task_ids=tuple(dict.fromkeys(task_id for turn in turns for task_id in turn.task_ids)),
            message=next((turn.text for turn in turns[1:2] if turn.message_id in ruled), ""),
        )

    async def _said(self, conversation_id: str, position: int) -> str:
        with suppress(ContentMissingError):
            for message in await self._parts.messages.read(conversation_id, position, position):
                return _text_of(message.content)
        return ""


def _answering(ended: TurnEnded, text: str) -> ChatTurn:
    if ended.error or not text:
        text = f"I could not answer this: {ended.error or 'the model said nothing.'}"
    tools = service.mentioned(text, ended.tools, ended.known_tools)
    return _turn(ended.said.message_id, text, AnsweredBy.MODEL, tools, ended.task_ids, ended.error)


def _turn(message_id: str, text: str, by: AnsweredBy, tools: tuple[str, ...], task_ids: tuple[str, ...] = (), error: str = "") -> ChatTurn:
    """A turn of the assistant. The chat numbers it."""
    return ChatTurn(
        number=0,
        role=ChatRole.ASSISTANT,
        text=text,
        at=datetime.now(UTC),
        message_id=message_id,
        tools=tools,
        task_ids=task_ids,
        answered_by=by,
        error=well_formed(error),
    )


def _text_of(content: Sequence[Block]) -> str:
    texts = (block.text.strip() for block in content if isinstance(block, Text))
    return well_formed("\n\n".join(text for text in texts if text))
