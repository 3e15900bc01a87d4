"""The cost of a turn of a model, and the budget for the next one."""

from dataclasses import dataclass

from toolagent.contracts.task_specs import MakeLimits
from toolagent_service.agents.ledger import Lost
from toolagent_service.contracts.agent import AgentEnd, AgentLimits, LoopState, ModelAsk
from toolagent_service.contracts.model import Price, Rates, Usage

LEAST_ANSWER = 1_024
"""Tokens. A turn with fewer is useless."""

_MILLION = 1_000_000

_BYTES_OF_A_TOKEN = 3
"""Bytes of UTF-8 per token: a little more in English, and about one character in Chinese."""


@dataclass(frozen=True, slots=True)
class LimitNames:
    """The names of limits, in messages that say how to raise them. `whose` limits they are."""

    whose: str = "the task"
    turns: str = "limits.turns"
    wall_s: str = "limits.wall_s"
    tokens: str = "limits.tokens"
    cost_usd: str = "limits.cost_usd"


OF_A_TASK = LimitNames()


@dataclass(frozen=True, slots=True)
class Exhausted:
    """No turn is possible any more, with the reason."""

    end: AgentEnd
    reason: str


def cost_of(price: Price, usage: Usage) -> float:
    """USD. A price for long prompts holds for the whole turn."""
    rates = _rates(price, usage)
    spent = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + usage.cache_read_tokens * rates.cache_read
        + usage.cache_write_tokens * rates.cache_write
    )
    return spent / _MILLION


def limits_for(asked: MakeLimits, allowed: AgentLimits, price: Price | None) -> AgentLimits:
    """The limits of a task: those it asks for, within those of the service.

    The cost of a model without a price is unknown. A limit in money of the task itself then stays, and the loop ends
    before the first turn, because the caller relies on it. The limit of the service is dropped, so that such a model can work; it holds for
    turns that are answered under a name with a price.
    """
    if asked.cost_usd is not None:
        cost = asked.cost_usd if allowed.cost_usd is None else min(asked.cost_usd, allowed.cost_usd)
    else:
        cost = allowed.cost_usd if price is not None else None
    return allowed.model_copy(
        update={
            "turns": min(asked.turns or allowed.turns, allowed.turns),
            "wall_s": min(asked.wall_s or allowed.wall_s, allowed.wall_s),
            "tokens": min(asked.tokens or allowed.tokens, allowed.tokens),
            "cost_usd": cost,
            "known_usd": allowed.cost_usd if cost is None else None,
        }
    )


def answer_budget(limits: AgentLimits, price: Price | None, state: LoopState, names: LimitNames = OF_A_TASK) -> int | Exhausted:
    """Tokens that the next turn may write within the limits: at least `LEAST_ANSWER`, or the limit of a turn if that is less.

    It is assumed to read what the last turn read and wrote, and all new outcomes and remarks.
    """
    new = _new_tokens(state)
    reads = state.last_usage.total + new
    least = min(LEAST_ANSWER, limits.turn_tokens)
    tokens = limits.tokens - state.tokens - reads
    if tokens < least:
        used = f"{state.tokens:,} of {limits.tokens:,} tokens are used, and another turn takes at least {reads + least:,}."
        return Exhausted(AgentEnd.TOKENS, f"{used} Give {names.whose} more with {names.tokens}, or ask for less at once.")
    if limits.cost_usd is None:
        return _unpriced(limits, state, names) or min(tokens, limits.turn_tokens)
    if price is None:
        return Exhausted(
            AgentEnd.UNPRICED,
            f"{names.whose.capitalize()} has a limit in money ({names.cost_usd}), but no price is known for the model: add one to the file "
            "of prices, or leave the limit out.",
        )
    affordable = _affordable(limits.cost_usd - state.cost_usd, price, state.last_usage, new)
    if affordable < least:
        return _spent(state.cost_usd, limits.cost_usd, names)
    return min(tokens, limits.turn_tokens, affordable)


def next_attempt_budget(ask: ModelAsk, price: Price | None, lost: Lost, names: LimitNames = OF_A_TASK) -> int | Exhausted:
    """Tokens that the answer may have in the next attempt, after lost ones."""
    if ask.limits is None or not lost.attempts:
        return ask.max_tokens
    # The next attempt reads as much as each lost one.
    read = {name: count // lost.attempts for name, count in lost.usage.model_dump(exclude={"output_tokens"}).items()}
    tokens, cost_usd = ask.tokens + lost.usage.total, ask.cost_usd + lost.cost_usd
    state = LoopState(started_s=0, tokens=tokens, cost_usd=cost_usd, last_usage=Usage.model_validate(read))
    budget = answer_budget(ask.limits, price, state, names)
    if isinstance(budget, Exhausted):
        return Exhausted(budget.end, f"The model's answer broke off {lost.attempts} times, which is paid for. {budget.reason}")
    return min(budget, ask.max_tokens)


def _new_tokens(state: LoopState) -> int:
    """The approximate number of tokens that no turn has read yet."""
    size = state.unread + sum(len(remark.encode("utf-8", "surrogatepass")) for remark in state.remarks)
    return -(-size // _BYTES_OF_A_TOKEN)


def _unpriced(limits: AgentLimits, state: LoopState, names: LimitNames) -> Exhausted | None:
    """The limit for a model without a price: the cost of past turns may be known."""
    over = limits.known_usd is not None and 0 < state.cost_usd >= limits.known_usd
    return _spent(state.cost_usd, limits.known_usd or 0.0, names) if over else None


def _spent(cost_usd: float, limit_usd: float, names: LimitNames) -> Exhausted:
    spent = f"${cost_usd:.4f} of ${limit_usd:.4f} are spent, which is not enough for another turn."
    return Exhausted(AgentEnd.MONEY, f"{spent} Give {names.whose} more with {names.cost_usd}.")


def _affordable(money: float, price: Price, last: Usage, new: int) -> int:
    """Tokens that can be written for the money left after reading; `new` tokens were in no turn before."""
    fresh = last.output_tokens + new
    plain, cached = Usage(input_tokens=last.read + fresh), Usage(cache_read_tokens=last.read, cache_write_tokens=fresh)
    # A model that read without a cache will not begin to use one. If it has read nothing, the dearer case counts.
    if last.cache_read_tokens + last.cache_write_tokens > 0:
        reading = cached
    else:
        reading = plain if last.input_tokens else max(plain, cached, key=lambda usage: cost_of(price, usage))
    left = money - cost_of(price, reading)
    output = _rates(price, reading).output
    if left < 0:
        return 0
    return int(left * _MILLION / output) if output > 0 else _MILLION


def _rates(price: Price, usage: Usage) -> Rates:
    over = price.long_prompt
    return over if over is not None and usage.read > over.over_tokens else price
