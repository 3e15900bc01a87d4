"""A turn of the model of a chat; an answer is recorded as the reply."""

import asyncio

from temporalio import activity

from activities.ask_model import AskModel
from engine.chats.conversations import Conversations
from toolagent.core.failures import StoreUnavailableError
from toolagent_service import step_names
from toolagent_service.agents.loop import is_answer
from toolagent_service.agents.service import SERVICE
from toolagent_service.contracts.chats import WRITING_DOWN_S, AnswerAsk, AnswerNote


class AnswerTurn:
    """Idempotent: a turn is paid once, and of two answers the first stands."""

    def __init__(self, asking: AskModel, conversations: Conversations) -> None:
        self._asking, self._conversations = asking, conversations

    @activity.defn(name=step_names.ANSWER_TURN)
    async def answer_turn(self, step: AnswerAsk) -> AnswerNote:
        answering = self._conversations.answering(step.ended)
        note, turn = await self._asking.turn(step.ask, answering)
        if not is_answer(SERVICE, note):
            return AnswerNote(note=note)
        if answering.reply is not None:
            return AnswerNote(note=note, reply=answering.reply)
        try:
            async with asyncio.timeout(WRITING_DOWN_S):
                return AnswerNote(note=note, reply=await self._conversations.end(step.ended, turn))
        except (StoreUnavailableError, TimeoutError):
            return AnswerNote(note=note)
        except Exception:  # noqa: BLE001 - the workflow's step bounds how often this is retried
            activity.logger.warning("An answer was not recorded: the workflow records it", exc_info=True)
            return AnswerNote(note=note)
