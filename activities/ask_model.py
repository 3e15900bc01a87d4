"""One turn of a model: paid once, written down, and told to the workflow in a few words."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.faults import Faults
from activities.heartbeats import beating
from activities.task_progress import telling
from engine.making.briefing import briefing
from engine.roles.prices import Prices
from engine.roles.prompts import Prompt, PromptMissing, Prompts
from engine.roles.provider import BusyKind, ModelBusy, ModelProvider, ModelRefused, TurnCancelled
from engine.store.clock import now
from engine.store.messages import MessageTable
from engine.store.model_turns import Asked, Lost, ModelTurnTable, RecordedTurn
from engine.store.task_notes import NewNote, TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from toolagent.client import names
from toolagent.contracts.agent import AgentLimits, AgentRequest, ModelAsk, ModelTurnNote
from toolagent.contracts.making import TaskNoteKind
from toolagent.contracts.making_steps import BriefStep
from toolagent.contracts.model import Message, ModelRequest, ModelTurn, Text, ToolOffer, ToolOutcome, ToolUse, Usage
from toolagent.contracts.task_specs import RepairTool
from toolagent.core.coding_log import log_line, shown_text, start_line, text_line
from toolagent.core.conversation import next_message, opening_message, sendable
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.model_cost import Exhausted, limits_for, next_attempt_budget
from toolagent.core.model_notes import note_of
from toolagent.core.task_reasons import why_a_model
from toolagent.core.texts import well_formed_contract

__all__ = ["AskModel", "Transcript"]

_BRIEFING = 0
"""Its position among the messages: before the first that is sent."""

_LINE_S = 30.0
"""Between lines of the log about one turn: a model may think for minutes."""

_LONGEST_BUSY = 300

_MOST_FAULTS = 3
"""Each may have been paid for."""

_STORE_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Transcript:
    """Where a conversation is kept. `key_of` names the outcome of a use: by the message it is in, and its id there."""

    messages: MessageTable
    outcomes: ToolOutcomeTable
    turns: ModelTurnTable
    notes: TaskNoteTable
    tasks: TaskTable
    key_of: Callable[[int, str], str]


class AskModel:
    """`provider` is None where no model is set. `fault_of` says why a use of a tool is not run; empty: it is."""

    def __init__(
        self,
        provider: ModelProvider | None,
        prompts: Prompts,
        prices: Prices,
        transcript: Transcript,
        offers: Sequence[ToolOffer],
        fault_of: Callable[[ToolUse], str],
        allowed: AgentLimits,
    ) -> None:
        self._provider, self._prompts, self._prices, self._kept = provider, prompts, prices, transcript
        self._offers, self._fault_of, self._allowed = tuple(offers), fault_of, allowed
        self._faults = Faults(_MOST_FAULTS)

    @activity.defn(name=names.BRIEF_AGENT)
    async def brief_agent(self, step: BriefStep) -> AgentRequest:
        """Writes down what it is told; may be repeated."""
        provider, text = self._asked(why_a_model(step.notes)), briefing(step)
        await self._kept.messages.put(step.task_id, _BRIEFING, Message(role="user", content=(Text(text=text),)))
        started = NewNote("agent", TaskNoteKind.START, start_line(datetime.now(UTC), text))
        await self._kept.notes.write(step.task_id, (started,))
        price, prompt = self._prices.of(provider.model), "repair" if isinstance(step.spec, RepairTool) else "coding"
        said = (text, await self._text_of(prompt), *(offer.model_dump_json() for offer in self._offers))
        return AgentRequest(
            task_id=step.task_id,
            prompt=prompt,
            limits=limits_for(step.spec.limits, self._allowed, price),
            price=price,
            opening=sum(len(part.encode("utf-8", "surrogatepass")) for part in said),
        )

    @activity.defn(name=names.ASK_MODEL)
    async def ask_model(self, ask: ModelAsk) -> ModelTurnNote:
        """The turn, asked for now or found: one that was written down is not paid again."""
        key = f"turn-{ask.turn}"
        with self._faults.bounded():
            state = await self._kept.turns.state(ask.task_id, key)
            lost, recorded = state.lost, state.recorded or await self._turn(ask, key, state.lost)
        return note_of(recorded.turn, self._fault_of).model_copy(update={"lost": lost.usage, "lost_usd": lost.cost_usd})

    async def _turn(self, ask: ModelAsk, key: str, lost: Lost) -> RecordedTurn:
        provider = self._asked()
        max_tokens = self._affordable(ask, provider, lost)
        prompt, messages = await self._prompt(ask.prompt), await self._messages(ask)
        asked, turns = Asked(provider.name, provider.model, prompt.label), self._kept.turns
        request = ModelRequest(system=prompt.text, messages=sendable(messages), tools=self._offers, max_tokens=max_tokens)
        began, answer = datetime.now(UTC), ask.position + 1

        async def lose(usage: Usage, kind: BusyKind) -> None:
            spent = self._prices.priced(_unanswered(provider.model, kind, usage), provider.model)
            await turns.record_lost(ask.task_id, key, _attempt(), spent, began, datetime.now(UTC), position=answer, asked=asked)

        try:
            async with beating() as pulse, telling(self._kept.tasks, ask.task_id, pulse.say, line_s=_LINE_S) as tell:
                turn = self._prices.priced(well_formed_contract(await provider.ask(request, tell)), provider.model)
        except ModelBusy as busy:
            if busy.usage is not None:
                await lose(busy.usage, busy.kind)
            await self._tell_busy(ask, busy)
            pause = timedelta(seconds=busy.retry_after_s) if busy.retry_after_s else None
            raise ApplicationError(
                busy.message, busy.kind, type=names.MODEL_BUSY, next_retry_delay=pause, category=ApplicationErrorCategory.BENIGN
            ) from busy
        except TurnCancelled as cut:
            # It is paid for, whoever does not want it any more: a second cancellation does not stop this.
            await asyncio.shield(lose(cut.usage, BusyKind.CUT))
            raise
        except ModelRefused as refused:
            raise _refused(refused.message, refused.kind) from refused
        ended, question = datetime.now(UTC), messages[-1]
        notes = _said(ask, turn, ended)
        record = partial(turns.record, ask.task_id, key, turn, began, ended, position=answer, asked=asked)
        return await _surely(partial(record, question=question, notes=notes, attempt=_attempt()))

    async def _tell_busy(self, ask: ModelAsk, busy: ModelBusy) -> None:
        """The progress says so each time; the log ever more seldom: a model may be away for as long as the agent has time."""
        attempt, at = activity.info().attempt, now()
        then = f"in {busy.retry_after_s:.0f} s" if busy.retry_after_s else "soon"
        told = shown_text(f"turn {ask.turn}: {busy.message}", _LONGEST_BUSY) + f" (attempt {attempt}; it is asked again {then})"
        line = NewNote(f"busy:{ask.turn}:{attempt}", TaskNoteKind.PROGRESS, log_line(at, f"[PROGRESS] {told}"), None, at)
        # Whoever asks again soon says it then.
        with suppress(StoreUnavailableError):
            await self._kept.tasks.note_progress(ask.task_id, told, line if attempt.bit_count() == 1 else None)

    def _affordable(self, ask: ModelAsk, provider: ModelProvider, lost: Lost) -> int:
        """How many tokens the answer may have. What broke off was paid for, and may have used up what there was for this turn."""
        budget = next_attempt_budget(ask, self._prices.of(provider.model), lost.attempts, lost.usage, lost.cost_usd)
        if isinstance(budget, Exhausted):
            raise _refused(budget.reason, budget.end.value)
        return budget

    async def _prompt(self, name: str) -> Prompt:
        try:
            return await asyncio.to_thread(self._prompts.get, name)
        except PromptMissing as missing:
            # Asking again does not bring it.
            raise _refused(
                f"{missing} The service takes its own prompts where the folder TOOL_AGENT_DATA_DIR has no folder prompts."
            ) from missing

    async def _text_of(self, prompt: str) -> str:
        """Nothing where there is none: the first turn says so."""
        try:
            return (await asyncio.to_thread(self._prompts.get, prompt)).text
        except PromptMissing:
            return ""

    async def _messages(self, ask: ModelAsk) -> tuple[Message, ...]:
        """All of them. The last one is written down with its answer: it is made of what stands, and each attempt makes the same."""
        if ask.position == 1:
            told = await self._kept.messages.read(ask.task_id, _BRIEFING, _BRIEFING)
            return (opening_message("\n".join(block.text for block in told[0].content if isinstance(block, Text)), ask),)
        before = ask.position - 1
        said = await self._kept.messages.read(ask.task_id, 1, before)
        return (*said, next_message(said[-1], await self._outcomes(ask.task_id, before, said[-1]), ask))

    async def _outcomes(self, task_id: str, position: int, answer: Message) -> dict[str, ToolOutcome]:
        keys = {self._kept.key_of(position, use.id): use.id for use in answer.content if isinstance(use, ToolUse)}
        return {keys[key]: outcome for key, outcome in (await self._kept.outcomes.get(task_id, keys)).items()}

    def _asked(self, why: str = "") -> ModelProvider:
        """`why` a model is asked at all goes first: where none is set, that is what has to be mended, or the setting."""
        if self._provider is None:
            unset = "No model is set that could write it. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or TOOL_AGENT_MODEL_BASE_URL)."
            raise _refused(f"{why}\n\n{unset}".strip())
        return self._provider


async def _surely(record: Callable[[], Awaitable[RecordedTurn]]) -> RecordedTurn:
    """However long the database is away: it has been paid for, and another attempt would pay again."""
    async with beating():
        while True:
            try:
                return await record()
            except StoreUnavailableError as error:
                activity.logger.warning("A turn of a model waits to be written down: %s", error)
                await asyncio.sleep(_STORE_PAUSE_S)


def _refused(message: str, *details: str) -> ApplicationError:
    """Asking again brings nothing. It is the task's reason, and no fault of the service that its log would have to explain."""
    return ApplicationError(message, *details, type=names.MODEL_REFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN)


def _said(ask: ModelAsk, turn: ModelTurn, at: datetime) -> tuple[NewNote, ...]:
    said = " ".join(block.text for block in turn.content if isinstance(block, Text)).strip()
    return (NewNote(f"said:{ask.turn}", TaskNoteKind.TEXT, text_line(at, said), None, at),) if said else ()


def _attempt() -> str:
    """This one among all there may ever be at the turn."""
    info = activity.info()
    return f"{info.workflow_run_id}:{info.activity_id}:{info.attempt}"


def _unanswered(model: str, kind: BusyKind, usage: Usage) -> ModelTurn:
    """What is known of a turn that broke off."""
    return ModelTurn(content=(), stop_reason=kind.value, model=model, usage=usage)
