"""Asks a model for one turn: pays once, records the turn, and returns a short note of it to the workflow."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from temporalio import activity

from activities.agents.models import Models, refusal
from activities.agents.role import AnyRole
from activities.attempts import attempt_key
from activities.failures import expected
from activities.faults import Faults
from activities.heartbeats import beating
from engine.roles.heard import Heard
from engine.roles.provider import BusyKind, ModelBusy, ModelProvider, ModelRefused, TurnCancelled
from engine.tasks.progress import telling
from engine.tasks.transcript import Also, AlsoWritten, Transcript
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.texts import well_formed_contract
from toolagent_service import step_names
from toolagent_service.agents.coding_log import NewNote, log_line, shown_text, text_line
from toolagent_service.agents.conversation import next_message, opening_message, sendable
from toolagent_service.agents.ledger import Asked, Lost, RecordedTurn
from toolagent_service.agents.model_cost import Exhausted, next_attempt_budget
from toolagent_service.agents.model_notes import key_of_use, note_of
from toolagent_service.contracts.agent import ModelAsk, ModelTurnNote
from toolagent_service.contracts.model import Message, ModelRequest, ModelTurn, Text, ToolOutcome, ToolUse, Usage

_LINE_S = 30.0
"""Seconds between log lines about one turn: a model may think for minutes."""

_LONGEST_BUSY = 300

_MOST_FAULTS = 3
"""Each may have cost money."""

_STORE_PAUSE_S = 5.0


Record: TypeAlias = Callable[[Also | None], Awaitable[RecordedTurn]]
"""Records a turn, and what is given in the same transaction."""


class AskModel:
    """Serves agents of the given roles."""

    def __init__(self, models: Models, transcript: Transcript, roles: Iterable[AnyRole]) -> None:
        self._models, self._kept = models, transcript
        self._roles = {role.name: role for role in roles}
        self._faults = Faults(_MOST_FAULTS)

    @activity.defn(name=step_names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        return (await self.turn(ask))[0]

    async def turn(self, ask: ModelAsk, also: AlsoWritten | None = None) -> tuple[ModelTurnNote, ModelTurn]:
        """The recorded turn, or a new one: no turn is paid twice. `also` is recorded together with a new one."""
        key = f"turn-{ask.turn}"
        with self._faults.bounded():
            state = await self._kept.turns.state(ask.conversation_id, key)
            lost, recorded = state.lost, state.recorded or await self._turn(ask, key, state.lost, also)
        return self._note(ask, recorded.turn).model_copy(update={"lost": lost.usage, "lost_usd": lost.cost_usd}), recorded.turn

    def _note(self, ask: ModelAsk, turn: ModelTurn) -> ModelTurnNote:
        role = self._roles[ask.role]
        return note_of(turn, role.rules.smaller_steps, role.fault_in)

    async def _turn(self, ask: ModelAsk, key: str, lost: Lost, also: AlsoWritten | None) -> RecordedTurn:
        provider, role, prices = self._models.asked(), self._roles[ask.role], self._models.prices
        max_tokens = self._affordable(ask, provider, lost)
        prompt, messages = await self._models.prompt(ask.prompt), await self._messages(ask)
        asked, turns = Asked(provider.name, provider.model, prompt.label), self._kept.turns
        request = ModelRequest(system=prompt.text, messages=sendable(messages), tools=role.offers, max_tokens=max_tokens)
        began, answer, of_task = datetime.now(UTC), ask.position + 1, role.rules.of_task

        async def lose(usage: Usage, kind: BusyKind) -> None:
            broken = ModelTurn(content=(), stop_reason=kind.value, model=provider.model, usage=usage)
            spent = prices.priced(broken, provider.model)
            await turns.record_lost(
                ask.conversation_id, key, attempt_key(), spent, began, datetime.now(UTC), position=answer, asked=asked, of_task=of_task
            )

        # Heartbeats to the end: recording may wait for the database, and another attempt would pay again.
        async with beating() as attempt, role.listening(ask, activity.info().attempt) as heard:
            # Only tasks show progress.
            telling_progress = (
                telling(self._kept.tasks, ask.conversation_id, attempt_key(), attempt.say, line_s=_LINE_S)
                if of_task
                else nullcontext(attempt.say)
            )
            try:
                async with telling_progress as tell:
                    turn = prices.priced(well_formed_contract(await provider.ask(request, tell, heard.hear)), provider.model)
            except ModelBusy as busy:
                if busy.usage is not None:
                    await lose(busy.usage, busy.kind)
                await self._tell_busy(ask, busy)
                pause = timedelta(seconds=busy.retry_after_s) if busy.retry_after_s else None
                raise expected(busy.message, step_names.MODEL_BUSY, busy.kind, pause=pause) from busy
            except TurnCancelled as cut:
                # The turn costs money although it was cancelled. A second cancellation does not stop this record.
                await asyncio.shield(lose(cut.usage, BusyKind.CUT))
                raise
            except ModelRefused as refused:
                raise refusal(refused.message, refused.kind) from refused
            ended, question = datetime.now(UTC), messages[-1]
            notes = _said(ask, turn, ended) if of_task else ()

            def record(within: Also | None) -> Awaitable[RecordedTurn]:
                return turns.record(
                    ask.conversation_id,
                    key,
                    turn,
                    began,
                    ended,
                    position=answer,
                    asked=asked,
                    question=question,
                    notes=notes,
                    attempt=attempt_key(),
                    of_task=of_task,
                    also=within,
                )

            return await self._recorded(ask, turn, record, heard, also)

    async def _recorded(self, ask: ModelAsk, turn: ModelTurn, record: Record, heard: Heard, also: AlsoWritten | None) -> RecordedTurn:
        try:
            rest = await heard.rest()
            within = also(self._note(ask, turn), turn, rest) if also is not None else None
            if also is not None and within is not None:
                recorded = await _retried(record, also, within)
                heard.was_told()
                return recorded
            await heard.write()
        except Exception:  # noqa: BLE001 - a turn that was paid for is recorded in any case
            activity.logger.warning("A turn of a model is recorded without its notes", exc_info=True)
            if also is not None:
                also.undone()
        return await _retried(record)

    async def _tell_busy(self, ask: ModelAsk, busy: ModelBusy) -> None:
        """Tells of each attempt in the progress, and of ever fewer in the log: a model may be busy for as long as the agent has time."""
        attempt, at = activity.info().attempt, datetime.now(UTC)
        then = f"in {busy.retry_after_s:.0f} s" if busy.retry_after_s else "soon"
        told = shown_text(f"turn {ask.turn}: {busy.message}", _LONGEST_BUSY) + f" (attempt {attempt}; it is asked again {then})"
        line = NewNote(f"busy:{ask.turn}:{attempt}", TaskNoteKind.PROGRESS, log_line(at, f"[PROGRESS] {told}"), None, at)
        # The next attempt tells the same.
        with suppress(StoreUnavailableError):
            await self._kept.tasks.note_progress(ask.conversation_id, told, line if attempt.bit_count() == 1 else None)

    def _affordable(self, ask: ModelAsk, provider: ModelProvider, lost: Lost) -> int:
        """The most tokens of the answer. Answers that broke off cost money, and may have used up the budget of this turn."""
        budget = next_attempt_budget(ask, self._models.prices.of(provider.model), lost, self._roles[ask.role].rules.limits)
        if isinstance(budget, Exhausted):
            raise refusal(budget.reason, budget.end.value)
        return budget

    async def _messages(self, ask: ModelAsk) -> tuple[Message, ...]:
        """All messages. The last one is recorded with its answer; each attempt makes the same one from the recorded messages."""
        if ask.position == 1:
            return (opening_message(await self._roles[ask.role].opening(ask.conversation_id, self._kept), ask),)
        before = ask.position - 1
        said = await self._kept.messages.read(ask.conversation_id, 1, before)
        return (*said, next_message(said[-1], await self._outcomes(ask.conversation_id, before, said[-1]), ask))

    async def _outcomes(self, conversation_id: str, position: int, answer: Message) -> dict[str, ToolOutcome]:
        keys = {key_of_use(position, use.id): use.id for use in answer.content if isinstance(use, ToolUse)}
        return {keys[key]: outcome for key, outcome in (await self._kept.outcomes.get(conversation_id, keys)).items()}


async def _retried(record: Record, also: AlsoWritten | None = None, within: Also | None = None) -> RecordedTurn:
    """Retries until the database is back: another attempt of the activity would pay for the turn again."""
    async with beating():
        while True:
            if also is not None:
                also.undone()  # it is unknown whether an earlier try was committed
            try:
                return await record(within)
            except StoreUnavailableError as error:
                activity.logger.warning("A turn of a model waits to be recorded: %s", error)
                await asyncio.sleep(_STORE_PAUSE_S)


def _said(ask: ModelAsk, turn: ModelTurn, at: datetime) -> tuple[NewNote, ...]:
    said = " ".join(block.text for block in turn.content if isinstance(block, Text)).strip()
    return (NewNote(f"said:{ask.turn}", TaskNoteKind.TEXT, text_line(at, said), None, at),) if said else ()
