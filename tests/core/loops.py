"""Requests, notes and a simulated world for the loop."""

from collections.abc import Callable, Iterator

from toolagent_service.agents import loop
from toolagent_service.agents.coding import CODING
from toolagent_service.contracts.agent import (
    AgentLimits,
    AgentRequest,
    AgentResult,
    LoopState,
    ModelAsk,
    ModelTurnNote,
    ToolNote,
    ToolUseNote,
)
from toolagent_service.contracts.model import Price, Usage

__all__ = ["PRICE", "asked", "live", "noted", "outcome", "request", "turn", "use"]

PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


def request(price: Price | None = PRICE, **limits: float | None) -> AgentRequest:
    return AgentRequest(conversation_id="create_0a1b2c3d", prompt="coding", limits=AgentLimits.model_validate(limits), price=price)


def use(name: str = "run_in_uv", digest: str = "a", use_id: str = "toolu_1", fault: str = "") -> ToolUseNote:
    return ToolUseNote(id=use_id, name=name, summary=f"{name} | {digest}", input_digest=digest, fault=fault)


def turn(
    *uses: ToolUseNote, stop_reason: str = "", said: str = "", usage: Usage | None = None, cost_usd: float | None = 0.01
) -> ModelTurnNote:
    return ModelTurnNote(
        stop_reason=stop_reason or ("tool_use" if uses else "end_turn"),
        model="claude",
        usage=usage or Usage(input_tokens=100, output_tokens=20),
        cost_usd=cost_usd,
        uses=uses,
        said=said,
    )


def outcome(of: ToolUseNote, digest: str = "done", product: str | None = None) -> ToolNote:
    return ToolNote(tool_use_id=of.id, name=of.name, summary=of.summary, digest=digest, product=product)


def asked(of: AgentRequest, state: LoopState, now_s: float = 0.0) -> ModelAsk:
    """The next step, which must ask the model."""
    step = loop.next_step(of, state, now_s)
    assert isinstance(step, loop.AskModel), step
    return step.ask


def noted(of: AgentRequest, state: LoopState, note: ModelTurnNote) -> LoopState:
    return loop.after_model(CODING, state, asked(of, state), note)


def live(
    of: AgentRequest, answer: Callable[[ModelAsk], ModelTurnNote], do: Callable[[str], ToolNote], clock: Iterator[float]
) -> tuple[AgentResult, int]:
    """Run it to its end. Returns the number of steps."""
    state = loop.begin(of, next(clock))
    for steps in range(10_000):
        match loop.next_step(of, state, next(clock)):
            case loop.AskModel(ask=ask):
                state = loop.after_model(CODING, state, ask, answer(ask))
            case loop.RunTools(allowed=allowed, refused=refused):
                state = loop.after_tools(state, (*(do(run.tool_use_id) for run in allowed), *refused))
            case loop.Finish(result=result):
                return result, steps
    raise AssertionError("It does not end.")
