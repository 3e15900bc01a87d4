"""The agent of a misbehaving model ends within its limits, with a reason that a person can act on."""

from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.store.database import Database
from tests.activities.asking import TASK, Agent, agent_of, scenario
from toolagent.testing.servers.model_server import ModelServer
from toolagent_service.agents.loop import CIRCLE_END, CIRCLE_HINT, IDLE_TURNS
from toolagent_service.contracts.agent import AgentEnd, AgentResult
from toolagent_service.contracts.model import Message, ToolOutcome

USAGE: JsonValue = {"input_tokens": 4_000, "output_tokens": 100}


def _for_ever(**turn: JsonValue) -> list[dict[str, JsonValue]]:
    return [{"usage": USAGE, "repeat": "forever", **turn}]


def _using(name: str, **given: JsonValue) -> list[dict[str, JsonValue]]:
    return _for_ever(tool_use={"name": name, "input": given})


READING = _using("read_file", path="main.py")
PLAYED = {
    "talks nonsense": _for_ever(text="lorem ipsum 完全 \N{PILE OF POO}"),
    "calls what is not there": _using("grep_files", pattern="x"),
    "misses arguments": _using("write_file", content="x"),
    "gives wrong arguments": _using("read_file", path={"a": 1}, offset="many"),
    "reads on and on": READING,
    "will not": _for_ever(text="I cannot help with that.", stop_reason="refusal"),
    "has read too much": _for_ever(text="So", stop_reason="model_context_window_exceeded"),
    "is cut off": _for_ever(text="I will write a very long", stop_reason="max_tokens"),
}


@pytest.fixture(scope="module")
def server() -> Generator[ModelServer]:
    with ModelServer(scenario(PLAYED)) as server:
        yield server


@pytest_asyncio.fixture
async def agent(server: ModelServer, database: Database, tmp_path: Path) -> AsyncGenerator[Agent]:
    async with agent_of(server.url, database, tmp_path) as agent:
        yield agent


async def _run(agent: Agent, wanted: str, outcome: Callable[[int], str] = str, **limits: float | None) -> AgentResult:
    agent.outcome = outcome
    return await agent.run(await agent.request(wanted, **limits))


async def _told(agent: Agent) -> str:
    """The outcomes that the model got for its uses."""
    messages: tuple[Message, ...] = await agent.messages.read(TASK)
    return "\n".join(block.content for message in messages for block in message.content if isinstance(block, ToolOutcome))


@pytest.mark.parametrize("wanted", ["talks nonsense", "is cut off"])
async def test_one_that_does_nothing_is_asked_to_go_on_and_then_let_go(agent: Agent, wanted: str) -> None:
    result = await _run(agent, wanted)
    assert (result.end, result.state.turns, agent.used) == (AgentEnd.GAVE_UP, IDLE_TURNS + 1, [])
    assert str(PLAYED[wanted][0]["text"]) in result.reason


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("calls what is not there", "There is no tool 'grep_files'."),
        ("misses arguments", "'path' is missing"),
        ("gives wrong arguments", "path"),
    ],
)
async def test_one_that_wants_what_cannot_be_done_is_told_why_and_stopped(agent: Agent, wanted: str, told: str) -> None:
    result = await _run(agent, wanted)
    assert (result.end, result.state.turns, agent.used) == (AgentEnd.CIRCLES, CIRCLE_END, [])
    assert told in await _told(agent)


async def test_one_that_goes_round_is_told_so_and_stopped(agent: Agent) -> None:
    result = await _run(agent, "reads on and on", lambda _: "the same")
    assert (result.end, result.state.turns, len(agent.used)) == (AgentEnd.CIRCLES, CIRCLE_END, CIRCLE_END)
    assert "read_file" in result.reason
    messages = await agent.messages.read(TASK)
    assert [f"{CIRCLE_HINT} times" in str(message) for message in messages].count(True) == 1


@pytest.mark.parametrize(
    ("limits", "end", "turns"),
    [
        ({"turns": 7}, AgentEnd.TURNS, 7),
        ({"tokens": 15_000}, AgentEnd.TOKENS, 3),  # of 4,100 each, and room for one more
        ({"cost_usd": 0.06}, AgentEnd.MONEY, 3),  # of $0.0135
        ({"wall_s": 10.5}, AgentEnd.WALL_TIME, 5),  # a step takes a second
    ],
)
async def test_one_that_never_finishes_ends_at_each_limit_with_the_name_of_that(
    agent: Agent, limits: dict[str, float], end: AgentEnd, turns: int
) -> None:
    result = await agent.run(await agent.request("reads on and on", **limits))
    assert (result.end, result.state.turns) == (end, turns)
    assert f"limits.{next(iter(limits))}" in result.reason
    spent = await agent.turns.spent(TASK)
    assert (spent.turns, spent.tokens, spent.cost_usd) == (turns, result.state.tokens, pytest.approx(result.state.cost_usd))
    assert spent.tokens <= limits.get("tokens", spent.tokens)
    assert spent.cost_usd <= limits.get("cost_usd", spent.cost_usd)


async def test_a_limit_in_money_without_a_price_ends_before_anything_is_paid(
    server: ModelServer, database: Database, tmp_path: Path
) -> None:
    async with agent_of(server.url, database, tmp_path, price=None) as agent:
        result = await _run(agent, "reads on and on", cost_usd=1.0)
        assert (result.end, (await agent.turns.spent(TASK)).turns) == (AgentEnd.UNPRICED, 0)


@pytest.mark.parametrize(("wanted", "end"), [("will not", AgentEnd.REFUSED), ("has read too much", AgentEnd.CONTEXT)])
async def test_what_going_on_cannot_change_ends_at_once(agent: Agent, wanted: str, end: AgentEnd) -> None:
    result = await _run(agent, wanted)
    assert (result.end, result.state.turns) == (end, 1)
