"""One turn of a model: paid once, written down, and told to the workflow in a few words."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.agents.models import Models, refusal
from activities.agents.role import AnyRole
from activities.faults import Faults
from activities.heartbeats import attempt_key, beating
from engine.roles.heard import Heard
from engine.roles.provider import BusyKind, ModelBusy, ModelProvider, ModelRefused, TurnCancelled
from engine.tasks.progress import Progress, telling
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
"""Between lines of the log about one turn: a model may think for minutes."""

_LONGEST_BUSY = 300

_MOST_FAULTS = 3
"""Each may have been paid for."""

_STORE_PAUSE_S = 5.0


class Record(Protocol):
    def __call__(self, *, also: Also | None = None) -> Awaitable[RecordedTurn]: ...


class AskModel:
    """For agents of the given roles."""

    def __init__(self, models: Models, transcript: Transcript, roles: Iterable[AnyRole]) -> None:
        self._models, self._kept = models, transcript
        self._roles = {role.name: role for role in roles}
        self._faults = Faults(_MOST_FAULTS)

    @activity.defn(name=step_names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        return (await self.turn(ask))[0]

    async def turn(self, ask: ModelAsk, also: AlsoWritten | None = None) -> tuple[ModelTurnNote, ModelTurn]:
        """Asked for now or found: one that was written down is not paid again. `also` is written with one that is asked for now."""
        key = f"turn-{ask.turn}"
        with self._faults.bounded():
            state = await self._kept.turns.state(ask.conversation_id, key)
            lost, recorded = state.lost, state.recorded or await self._turn(ask, key, state.lost, also)
        return self._note(ask, recorded.turn).model_copy(update={"lost": lost.usage, "lost_usd": lost.cost_usd}), recorded.turn

    def _note(self, ask: ModelAsk, turn: ModelTurn) -> ModelTurnNote:
        role = self._roles[ask.role]
        return note_of(turn, role.rules.smaller_steps, role.fault_in)

    async def _turn(self, ask: ModelAsk, key: str, lost: Lost, also: AlsoWritten | None) -> RecordedTurn:
        provider = self._models.asked()
        max_tokens = self._affordable(ask, provider, lost)
        prompt, messages = await self._models.prompt(ask.prompt), await self._messages(ask)
        asked, turns = Asked(provider.name, provider.model, prompt.label), self._kept.turns
        request = ModelRequest(system=prompt.text, messages=sendable(messages), tools=self._roles[ask.role].offers, max_tokens=max_tokens)
        began, answer, of_task = datetime.now(UTC), ask.position + 1, self._roles[ask.role].rules.of_task

        async def lose(usage: Usage, kind: BusyKind) -> None:
            spent = self._models.prices.priced(_unanswered(provider.model, kind, usage), provider.model)
            await turns.record_lost(
                ask.conversation_id, key, attempt_key(), spent, began, datetime.now(UTC), position=answer, asked=asked, of_task=of_task
            )

        # Heartbeats to the end: what is to be written down may wait for the database, and another attempt would pay again.
        async with beating() as attempt, self._listening(ask) as heard:
            try:
                async with self._telling(ask, attempt.say) as tell:
                    turn = self._models.prices.priced(well_formed_contract(await provider.ask(request, tell, heard.hear)), provider.model)
            except ModelBusy as busy:
                if busy.usage is not None:
                    await lose(busy.usage, busy.kind)
                await self._tell_busy(ask, busy)
                pause = timedelta(seconds=busy.retry_after_s) if busy.retry_after_s else None
                raise ApplicationError(
                    busy.message, busy.kind, type=step_names.MODEL_BUSY, next_retry_delay=pause, category=ApplicationErrorCategory.BENIGN
                ) from busy
            except TurnCancelled as cut:
                # It is paid for, whoever does not want it any more: a second cancellation does not stop this.
                await asyncio.shield(lose(cut.usage, BusyKind.CUT))
                raise
            except ModelRefused as refused:
                raise refusal(refused.message, refused.kind) from refused
            ended, question = datetime.now(UTC), messages[-1]
            notes = _said(ask, turn, ended) if of_task else ()
            record = partial(turns.record, ask.conversation_id, key, turn, began, ended, position=answer, asked=asked, of_task=of_task)
            record = partial(record, question=question, notes=notes, attempt=attempt_key())
            return await self._recorded(ask, turn, record, heard, also)

    async def _recorded(self, ask: ModelAsk, turn: ModelTurn, record: Record, heard: Heard, also: AlsoWritten | None) -> RecordedTurn:
        try:
            rest = await heard.rest()
            within = also(self._note(ask, turn), turn, rest) if also is not None else None
            if also is not None and within is not None:
                recorded = await _surely(lambda: _tried(also, record, within))
                heard.was_told()
                return recorded
            await heard.write()
        except Exception:  # noqa: BLE001 - whatever it is, what was paid for is written down
            activity.logger.warning("A turn of a model is written down without what it means", exc_info=True)
            if also is not None:
                also.undone()
        return await _surely(record)

    def _telling(self, ask: ModelAsk, say: Progress) -> AbstractAsyncContextManager[Progress]:
        if not self._roles[ask.role].rules.of_task:
            return nullcontext(say)  # nobody reads the progress of what is no task
        return telling(self._kept.tasks, ask.conversation_id, attempt_key(), say, line_s=_LINE_S)

    def _listening(self, ask: ModelAsk) -> AbstractAsyncContextManager[Heard]:
        return self._roles[ask.role].listening(ask, activity.info().attempt)

    async def _tell_busy(self, ask: ModelAsk, busy: ModelBusy) -> None:
        """The progress says so each time; the log ever more seldom: a model may be away for as long as the agent has time."""
        attempt, at = activity.info().attempt, datetime.now(UTC)
        then = f"in {busy.retry_after_s:.0f} s" if busy.retry_after_s else "soon"
        told = shown_text(f"turn {ask.turn}: {busy.message}", _LONGEST_BUSY) + f" (attempt {attempt}; it is asked again {then})"
        line = NewNote(f"busy:{ask.turn}:{attempt}", TaskNoteKind.PROGRESS, log_line(at, f"[PROGRESS] {told}"), None, at)
        # Whoever asks again soon says it then.
        with suppress(StoreUnavailableError):
            await self._kept.tasks.note_progress(ask.conversation_id, told, line if attempt.bit_count() == 1 else None)

    def _affordable(self, ask: ModelAsk, provider: ModelProvider, lost: Lost) -> int:
        """How many tokens the answer may have. What broke off was paid for, and may have used up what there was for this turn."""
        budget = next_attempt_budget(ask, self._models.prices.of(provider.model), lost, self._roles[ask.role].rules.limits)
        if isinstance(budget, Exhausted):
            raise refusal(budget.reason, budget.end.value)
        return budget

    async def _messages(self, ask: ModelAsk) -> tuple[Message, ...]:
        """All of them. The last one is written down with its answer: it is made of what stands, and each attempt makes the same."""
        if ask.position == 1:
            return (opening_message(await self._roles[ask.role].opening(ask.conversation_id, self._kept), ask),)
        before = ask.position - 1
        said = await self._kept.messages.read(ask.conversation_id, 1, before)
        return (*said, next_message(said[-1], await self._outcomes(ask.conversation_id, before, said[-1]), ask))

    async def _outcomes(self, conversation_id: str, position: int, answer: Message) -> dict[str, ToolOutcome]:
        keys = {key_of_use(position, use.id): use.id for use in answer.content if isinstance(use, ToolUse)}
        return {keys[key]: outcome for key, outcome in (await self._kept.outcomes.get(conversation_id, keys)).items()}


async def _tried(also: AlsoWritten, record: Record, within: Also) -> RecordedTurn:
    """What an earlier try wrote is committed or not: nobody knows, so it does not count."""
    also.undone()
    return await record(also=within)


async def _surely(record: Callable[[], Awaitable[RecordedTurn]]) -> RecordedTurn:
    """However long the database is away: it has been paid for, and another attempt would pay again."""
    async with beating():
        while True:
            try:
                return await record()
            except StoreUnavailableError as error:
                activity.logger.warning("A turn of a model waits to be written down: %s", error)
                await asyncio.sleep(_STORE_PAUSE_S)


def _said(ask: ModelAsk, turn: ModelTurn, at: datetime) -> tuple[NewNote, ...]:
    said = " ".join(block.text for block in turn.content if isinstance(block, Text)).strip()
    return (NewNote(f"said:{ask.turn}", TaskNoteKind.TEXT, text_line(at, said), None, at),) if said else ()


def _unanswered(model: str, kind: BusyKind, usage: Usage) -> ModelTurn:
    """What is known of a turn that broke off."""
    return ModelTurn(content=(), stop_reason=kind.value, model=model, usage=usage)
