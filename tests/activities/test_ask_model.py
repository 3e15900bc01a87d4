"""Turns of a model that fail: which are repeated, which are not, and which are paid for anyway."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from pydantic import JsonValue
from pydantic_core import to_json
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities import ask_model
from engine.roles.provider import unheard
from engine.store.database import Database
from engine.store.model_turns import ModelTurnTable
from tests.activities import asking
from tests.activities.asking import KEY, MODEL, PRICE, TASK, Agent, agent_of, scenario
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.failures import StoreUnavailableError
from toolagent.testing.servers.model_server import ModelServer
from toolagent_service import step_names
from toolagent_service.agents import loop
from toolagent_service.agents.ledger import RecordedTurn
from toolagent_service.agents.model_cost import cost_of
from toolagent_service.contracts.agent import AgentRequest, ModelAsk, ModelTurnNote
from toolagent_service.contracts.model import ModelRequest, ModelTurn, Text, ToolUse, Usage

SAID = "It is done, 完成."
USAGE: JsonValue = {"input_tokens": 5_000, "output_tokens": 200}
PAID = Usage(input_tokens=5_000, output_tokens=200)
LOST = Usage(input_tokens=5_000, output_tokens=1)
"""What the beginning of an answer says."""

BUSY = {
    "rate_limit": ("rate_limit", 7.5),
    "overloaded": ("overloaded", None),
    "server_error": ("server", None),
    "cut": ("cut", None),
    "ended_early": ("cut", None),
    "malformed": ("malformed", None),
    "error_event": ("overloaded", None),
    "slow": ("timeout", None),
}
"""Kind of busy, and how long to wait, by the fault."""

PAID_ALL_THE_SAME = ("cut", "ended_early", "error_event", "malformed")
REFUSED = {"unauthorized": "unauthenticated", "forbidden": "forbidden", "invalid_request": "bad_request"}


def _turn(kind: str, times: JsonValue = 1) -> dict[str, JsonValue]:
    return {
        "text": SAID,
        "usage": USAGE,
        "fault": {"kind": kind, "times": times, "retry_after": BUSY.get(kind, ("", None))[1], "seconds": 5},
    }


SIMPLE: dict[str, JsonValue] = {"text": SAID, "usage": USAGE}
PLAYED: dict[str, list[dict[str, JsonValue]]] = {kind: [_turn(kind)] for kind in (*BUSY, *REFUSED)}


@pytest.fixture(scope="module")
def server() -> Generator[ModelServer]:
    with ModelServer(
        scenario(
            {
                **PLAYED,
                "without end": [_turn("cut", "forever")],
                "costs": [_turn("overloaded")],
                "waits": [_turn("rate_limit")],
                "said": [SIMPLE],
                "at leisure": [{**SIMPLE, "seconds": 30}],
            }
        )
    ) as server:
        yield server


@pytest_asyncio.fixture
async def agent(server: ModelServer, database: Database, tmp_path: Path) -> AsyncGenerator[Agent]:
    # Whatever is slow is silent for longer.
    async with agent_of(server.url, database, tmp_path, silence_s=2.0) as agent:
        yield agent


def _first(request: AgentRequest) -> ModelAsk:
    step = loop.next_step(request, loop.begin(request, 0.0), 0.0)
    assert isinstance(step, loop.AskModel)
    return step.ask


async def _failure(agent: Agent, ask: ModelAsk, attempt: int = 1) -> ApplicationError:
    with pytest.raises(ApplicationError) as failure:
        await agent.attempt(ask, attempt)
    assert KEY not in repr(failure.value)
    return failure.value


@pytest.mark.parametrize("kind", BUSY)
async def test_what_may_pass_is_asked_again_after_the_time_that_the_server_names_and_counted_once(agent: Agent, kind: str) -> None:
    ask = _first(await agent.request(kind))
    failure = await _failure(agent, ask)
    busy, wait_s = BUSY[kind]
    assert (failure.type, failure.non_retryable, failure.details) == (step_names.MODEL_BUSY, False, (busy,))
    assert (failure.next_retry_delay.total_seconds() if failure.next_retry_delay else None) == wait_s
    lost = LOST if kind in PAID_ALL_THE_SAME else Usage()
    first = await agent.attempt(ask, 2)
    assert (first.said, first.usage, first.lost) == (SAID, PAID, lost)
    # Temporal did not hear of it, and asks again.
    assert await agent.attempt(ask, 3) == first
    spent = await agent.turns.spent(TASK)
    assert (spent.turns, spent.lost, spent.tokens) == (1, int(lost.total > 0), PAID.total + lost.total)
    assert spent.cost_usd == pytest.approx(cost_of(PRICE, PAID) + cost_of(PRICE, lost))


@pytest.mark.parametrize("kind", REFUSED)
async def test_what_will_not_pass_is_not_asked_again_and_says_what_to_look_at(agent: Agent, kind: str) -> None:
    failure = await _failure(agent, _first(await agent.request(kind)))
    assert (failure.type, failure.non_retryable, failure.details) == (step_names.MODEL_REFUSED, True, (REFUSED[kind],))
    assert "TOOL_AGENT_MODEL" in failure.message
    assert (await agent.turns.spent(TASK)).tokens == 0


async def test_a_model_that_is_away_is_told_at_once_and_not_again_and_again(agent: Agent) -> None:
    ask = _first(await agent.request("without end"))
    for attempt in range(1, 10):
        await _failure(agent, ask, attempt)
        task = await agent.tasks.get(TASK)
        assert task is not None
        assert f"attempt {attempt};" in task.progress
    lines = [note.text for note in await agent.notes.after(TASK) if note.kind is TaskNoteKind.PROGRESS]
    assert [number for number in range(1, 10) if any(f"attempt {number};" in line for line in lines)] == [1, 2, 4, 8]
    assert len(lines) == 4


async def test_the_log_says_how_long_a_model_wants_to_be_left_alone(agent: Agent) -> None:
    await _failure(agent, _first(await agent.request("waits")))
    (line,) = [note.text for note in await agent.notes.after(TASK) if note.kind is TaskNoteKind.PROGRESS]
    assert "[PROGRESS] turn 1: The model is not to be had now" in line
    assert "asked again in 8 s" in line


async def test_an_attempt_that_broke_off_is_in_the_ledger_the_sums_and_the_log_once(agent: Agent) -> None:
    ask = _first(await agent.request("without end"))
    for attempt in (1, 1, 2):
        await _failure(agent, ask, attempt)
    spent, task = await agent.turns.spent(TASK), await agent.tasks.get(TASK)
    assert task is not None
    assert (spent.turns, spent.lost, spent.tokens, task.tokens) == (0, 2, 2 * LOST.total, 2 * LOST.total)
    assert task.cost_usd == pytest.approx(2 * cost_of(PRICE, LOST))
    costs = [note for note in await agent.notes.after(TASK) if note.kind is TaskNoteKind.COST]
    assert ["broke off" in note.text for note in costs] == [True, True]


async def test_what_had_come_of_an_answer_that_is_cancelled_is_paid_for_all_the_same(
    server: ModelServer, database: Database, tmp_path: Path
) -> None:
    environment, heard = ActivityEnvironment(), asyncio.Event()

    def listen(*details: JsonValue) -> None:
        if str(details[0]).startswith(("the model answers", "writing")):
            heard.set()

    environment.on_heartbeat = listen
    async with agent_of(server.url, database, tmp_path) as agent:
        ask = _first(await agent.request("at leisure"))
        asking = asyncio.create_task(environment.run(agent.asking.ask_model, ask))
        hearing = asyncio.create_task(heard.wait())
        await asyncio.wait((asking, hearing), timeout=20, return_when=asyncio.FIRST_COMPLETED)
        assert heard.is_set()
        environment.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await agent.turns.spent(TASK)).lost == 1


async def test_answers_that_break_off_end_the_task_when_they_have_used_up_what_it_may_take(agent: Agent) -> None:
    request = await agent.request("without end", tokens=16_000)
    for attempt in (1, 2):
        assert (await _failure(agent, _first(request), attempt)).type == step_names.MODEL_BUSY
    failure = await _failure(agent, _first(request), 3)
    assert (failure.type, failure.non_retryable, failure.details) == (step_names.MODEL_REFUSED, True, ("tokens",))
    assert "limits.tokens" in failure.message
    assert (await agent.turns.spent(TASK)).lost == 2


async def test_each_turn_says_what_it_cost_and_what_the_task_has_cost_so_far(agent: Agent) -> None:
    ask = _first(await agent.request("costs"))
    await _failure(agent, ask)
    note: ModelTurnNote = await agent.attempt(ask, 2)
    assert note.cost_usd == cost_of(PRICE, PAID)
    (cost,) = [note for note in await agent.notes.after(TASK) if note.kind is TaskNoteKind.COST]
    assert cost.text.endswith("[COST] $0.0180, 5,200 tokens; so far $0.0180, 5,200 tokens")
    assert isinstance(cost.payload, dict)
    assert (cost.payload["usage"], cost.payload["cost_usd"]) == (PAID.model_dump(), note.cost_usd)


async def test_what_a_turn_was_asked_said_and_cost_is_there_with_it_and_once(agent: Agent) -> None:
    ask = _first(await agent.request("said"))
    assert await agent.messages.read(TASK) == ()
    for attempt in (1, 2):
        await agent.attempt(ask, attempt)
    question, answer = await agent.messages.read(TASK)
    assert (question.role, answer.content) == ("user", (Text(text=SAID),))
    assert [note.kind for note in await agent.notes.after(TASK)][-2:] == [TaskNoteKind.COST, TaskNoteKind.TEXT]
    assert (await agent.notes.tail(TASK, 1))[0].text.endswith(f"[TEXT] {SAID}")


@dataclass
class Careless:
    """A model that cuts texts in the middle of characters."""

    name: str = "careless"
    model: str = MODEL
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None] = unheard) -> ModelTurn:  # noqa: ARG002 - as the protocol has it
        self.asked.append(request)
        use = ToolUse(id=f"use-{len(self.asked)}", name="write_file", input={"path": "a", "\udc00": ["\ud83d"]})
        return ModelTurn(content=(Text(text="So \ud83d"), use), stop_reason="tool_use", model=MODEL, usage=Usage())

    async def aclose(self) -> None: ...


class Failing(ModelTurnTable):
    """A store that records no turn while there are `failures`."""

    failures: ClassVar[list[Exception]] = []

    async def record(self, *arguments: Any, **named: Any) -> RecordedTurn:
        if self.failures:
            raise self.failures.pop()
        return await super().record(*arguments, **named)


async def asked_while(failures: list[Exception], database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, bool]:
    """How often a turn is requested, and whether it succeeds in the end."""
    model = Careless()
    monkeypatch.setattr(Failing, "failures", failures)
    monkeypatch.setattr(asking, "ModelTurnTable", Failing)
    monkeypatch.setattr(ask_model, "_STORE_PAUSE_S", 0.01)
    async with agent_of(None, database, folder, other=model) as agent:
        ask = _first(await agent.request("x"))
        for number in range(1, 20):
            try:
                await agent.attempt(ask, number)
            except ApplicationError:
                return len(model.asked), False
            except (StoreUnavailableError, ZeroDivisionError):
                continue
            return len(model.asked), True
    raise AssertionError("It does not end.")


async def test_an_answer_that_cannot_be_written_down_is_not_paid_again_and_again(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bugs: list[Exception] = [ZeroDivisionError() for _ in range(50)]
    assert await asked_while(bugs, database, tmp_path, monkeypatch) == (3, False)


async def test_an_answer_waits_for_a_database_that_is_away(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await asked_while([StoreUnavailableError(), StoreUnavailableError()], database, tmp_path, monkeypatch) == (1, True)


async def test_half_a_character_in_an_answer_goes_nowhere(database: Database, tmp_path: Path) -> None:
    model = Careless()
    async with agent_of(None, database, tmp_path, other=model) as agent:
        await agent.run(await agent.request("x", turns=2))
    assert to_json(model.asked[1])
    assert model.asked[1].messages[1].content[0] == Text(text="So \ufffd")


async def test_without_a_model_or_a_key_nothing_is_asked_and_the_settings_are_named(database: Database, tmp_path: Path) -> None:
    async with agent_of(None, database, tmp_path, has_model=False) as agent:
        with pytest.raises(ApplicationError, match="TOOL_AGENT_MODEL_API_KEY") as none:
            await agent.request("anything")
    assert (none.value.type, none.value.non_retryable) == (step_names.MODEL_REFUSED, True)
    async with agent_of(None, database, tmp_path, key=None) as agent:
        failure = await _failure(agent, _first(await agent.request("anything")))
    assert (failure.type, failure.non_retryable, failure.details) == (step_names.MODEL_REFUSED, True, ("no_key",))
    assert "TOOL_AGENT_MODEL_API_KEY" in failure.message


async def test_another_key_is_refused(server: ModelServer, database: Database, tmp_path: Path) -> None:
    async with agent_of(server.url, database, tmp_path, key="sk-test-another-key-0000") as agent:
        failure = await _failure(agent, _first(await agent.request("overloaded")))
    assert (failure.type, failure.non_retryable, failure.details) == (step_names.MODEL_REFUSED, True, ("unauthenticated",))
    assert "TOOL_AGENT_MODEL_API_KEY" in failure.message


async def test_a_prompt_that_is_not_there_is_not_waited_for(server: ModelServer, database: Database, tmp_path: Path) -> None:
    async with agent_of(server.url, database, tmp_path, prompts=tmp_path / "none") as agent:
        failure = await _failure(agent, _first(await agent.request("overloaded")))
    assert (failure.type, failure.non_retryable) == (step_names.MODEL_REFUSED, True)
    assert "coding.md" in failure.message
    assert "TOOL_AGENT_DATA_DIR" in failure.message
