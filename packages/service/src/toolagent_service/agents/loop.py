"""The loop of a durable agent of any role: the next step, and the state after each outcome.

Pure: no clock, no I/O. The workflow runs the `next_step`, reports its outcome, and keeps the state. The state stays small:
messages are in the store, by position. Differences between roles are in `Rules`.
"""

from collections import Counter
from dataclasses import dataclass

from toolagent.contracts.making import Guidance
from toolagent_service.agents.model_cost import OF_A_TASK, Exhausted, LimitNames, answer_budget
from toolagent_service.contracts.agent import (
    AgentEnd,
    AgentRequest,
    AgentResult,
    LoopState,
    ModelAsk,
    ModelTurnNote,
    ShownOutcome,
    ToolNote,
    ToolRun,
    ToolUseNote,
)

IDLE_TURNS = 2
"""How often a model that uses no tool is asked to go on."""

CIRCLE_WINDOW = 24
"""The number of latest uses in which equal ones are counted. Circles of several steps count too."""

CIRCLE_HINT = 3
CIRCLE_END = 6

MOST_REMARKS = 20
"""The most remarks that may wait for the next turn."""

MOST_HEARD = 50
"""How many ids of guidance are remembered."""

_NO_ANSWERS = {"refusal", "model_context_window_exceeded", "max_tokens"}

_BUDGETS = {end.value for end in (AgentEnd.TOKENS, AgentEnd.MONEY, AgentEnd.UNPRICED)}

_CIRCLE = (
    "You have done the same thing {times} times with the same outcome ({what}). Doing it again will not change it: look at why, and try "
    "another way."
)
_CUT_OFF = "Your answer was cut off because it was too long, before any tool was used."
_ALWAYS_CUT = "The answer was too long and was cut off each time. Ask for less at once."


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one role. Texts are for its model."""

    final_tool: str
    """The tool that delivers the product and ends the agent. Later uses in the same turn are not run."""
    go_on: str
    """The remark after a turn without a use of a tool."""
    smaller_steps: str
    """The remark after an answer that was too long: how to make shorter ones."""
    gave_up: str
    """The reason, for people, of an agent that ended because it used no tool."""
    answers: bool = False
    """Whether a complete text without a use of a tool is the product, and ends the agent."""
    limits: LimitNames = OF_A_TASK
    """The names of the limits in messages."""
    of_task: bool = True
    """Whether its conversations are tasks, with a log and the sums of costs."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask for a turn; then `after_model`."""

    ask: ModelAsk


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these in order, because one may need the result of another. Then `after_tools` with all notes, or with each as it
    comes. `refused` are ready notes.
    """

    allowed: tuple[ToolRun, ...]
    refused: tuple[ToolNote, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the loop."""

    result: AgentResult


def begin(request: AgentRequest, now_s: float) -> LoopState:
    """The first state, or the one to continue from. `now_s` is the workflow's time."""
    return request.resume_from or LoopState(started_s=now_s, unread=request.opening)


def next_step(request: AgentRequest, state: LoopState, now_s: float, names: LimitNames = OF_A_TASK) -> AskModel | RunTools | Finish:
    """The next step. It does not change the state, so it may be asked again."""
    if state.end is not None:
        return _finish(state, state.end, state.reason)
    remaining_s = request.limits.wall_s - (now_s - state.started_s)
    if remaining_s <= 0:
        return _finish(state, AgentEnd.WALL_TIME, _time_is_over(request, names))
    if state.pending:
        return _tools(request, state, remaining_s)
    if state.turns >= request.limits.turns:
        return _finish(state, AgentEnd.TURNS, f"All {request.limits.turns} turns are used. Give more with {names.turns}.")
    match answer_budget(request.limits, request.price, state, names):
        case Exhausted(end=end, reason=reason):
            return _finish(state, end, reason)
        case int(max_tokens):
            return AskModel(
                ModelAsk(
                    conversation_id=request.conversation_id,
                    role=request.role,
                    prompt=request.prompt,
                    turn=state.turns + 1,
                    position=state.position + 1,
                    max_tokens=max_tokens,
                    outcomes=state.outcomes,
                    remarks=state.remarks,
                    limits=request.limits,
                    tokens=state.tokens,
                    cost_usd=state.cost_usd,
                )
            )


def after_model(rules: Rules, state: LoopState, ask: ModelAsk, note: ModelTurnNote) -> LoopState:
    """The state after an answer. Remarks of `ask` are removed; those that came meanwhile stay."""
    answered = state.model_copy(
        update={
            "turns": state.turns + 1,
            "position": ask.position + 1,
            "tokens": state.tokens + note.usage.total + note.lost.total,
            "cost_usd": state.cost_usd + (note.cost_usd or 0.0) + note.lost_usd,
            "last_usage": note.usage,
            "model": note.model,
            "outcomes": (),
            "unread": 0,
            "remarks": state.remarks[len(ask.remarks) :],
        }
    )
    match note.stop_reason:
        case "refusal":
            return ended(answered, AgentEnd.REFUSED, f"The model refused the task. {note.said}".strip())
        case "model_context_window_exceeded":
            return ended(
                answered, AgentEnd.CONTEXT, "The conversation is longer than the model can read. Split the task into smaller ones."
            )
        case _ if note.uses:
            return answered.model_copy(update={"pending": _until_final(rules, note.uses), "idle_turns": 0})
        case _:
            return _idle(rules, answered, note)


def after_tools(state: LoopState, notes: tuple[ToolNote, ...]) -> LoopState:
    """The state after some or all pending uses. A note without a pending use is a repetition, and ignored."""
    for note in notes:
        state = _after_tool(state, note)
    return state


def is_answer(rules: Rules, note: ModelTurnNote) -> bool:
    """Whether a turn is the product of the agent, so that `after_model` ends it."""
    return rules.answers and bool(note.said) and not note.uses and note.stop_reason not in _NO_ANSWERS


def with_guidance(state: LoopState, guidance: Guidance) -> LoopState:
    """The state with guidance of a person, which the model gets with the next turn. A repetition changes nothing."""
    if guidance.id in state.heard:
        return state
    return state.model_copy(
        update={
            "remarks": (*state.remarks, f"Guidance from the person who asked for this: {guidance.text}"),
            "heard": (*state.heard, guidance.id)[-MOST_HEARD:],
            # A person has looked: circles may be intended, and idle turns are answered.
            "fingerprints": (),
            "idle_turns": 0,
        }
    )


def refusal_of(state: LoopState) -> str | None:
    """Why guidance cannot be accepted now; None if it can."""
    if state.end is not None:
        return f"The agent has ended ({state.end.value})."
    if len(state.remarks) >= MOST_REMARKS:
        return f"{MOST_REMARKS} remarks wait for the model's next turn already; say more after it."
    return None


def ended(state: LoopState, end: AgentEnd, reason: str) -> LoopState:
    """The state of a stopped agent."""
    return state.model_copy(update={"end": end, "reason": reason})


def unanswered(state: LoopState, reason: str, kind: str = "") -> LoopState:
    """The state after a failure to ask the model. If lost answers used up a budget, `kind` is the value of that end."""
    return ended(state, AgentEnd(kind) if kind in _BUDGETS else AgentEnd.MODEL, reason)


def out_of_time(request: AgentRequest, state: LoopState, last: str = "", names: LimitNames = OF_A_TASK) -> LoopState:
    """The state if the time ended before the model answered. `last` is the last error of the model."""
    told = f" The model had not answered until then: {last}" if last else ""
    return ended(state, AgentEnd.WALL_TIME, f"{_time_is_over(request, names)}{told}")


def _time_is_over(request: AgentRequest, names: LimitNames) -> str:
    return f"The time of {request.limits.wall_s:g} s is over. Give more with {names.wall_s}."


def _finish(state: LoopState, end: AgentEnd, reason: str) -> Finish:
    return Finish(AgentResult(end=end, reason=reason, product=state.product, state=state))


def _tools(request: AgentRequest, state: LoopState, remaining_s: float) -> RunTools:
    return RunTools(
        allowed=tuple(
            ToolRun(
                conversation_id=request.conversation_id,
                role=request.role,
                position=state.position,
                tool_use_id=use.id,
                name=use.name,
                summary=use.summary,
                remaining_s=remaining_s,
                until=state.started_s + request.limits.wall_s,
            )
            for use in state.pending
            if not use.fault
        ),
        refused=tuple(
            ToolNote(tool_use_id=use.id, name=use.name, summary=use.summary, is_error=True, digest=use.fault, text=use.fault)
            for use in state.pending
            if use.fault
        ),
    )


def _until_final(rules: Rules, uses: tuple[ToolUseNote, ...]) -> tuple[ToolUseNote, ...]:
    """Refuses uses after the final tool, because they would change the product."""
    final = next((place for place, use in enumerate(uses) if use.name == rules.final_tool and not use.fault), len(uses))
    told = f"Not run: it came after {rules.final_tool}, which ends a turn."
    after = (use if use.fault else use.model_copy(update={"fault": told}) for use in uses[final + 1 :])
    return (*uses[: final + 1], *after)


def _idle(rules: Rules, state: LoopState, note: ModelTurnNote) -> LoopState:
    is_cut = note.stop_reason == "max_tokens"
    if is_answer(rules, note):
        return ended(state, AgentEnd.DONE, "It has answered.")
    if state.idle_turns >= IDLE_TURNS:
        if rules.answers and is_cut:
            return ended(state, AgentEnd.GAVE_UP, _ALWAYS_CUT)
        said = f" It said: {note.said}" if note.said else ""
        return ended(state, AgentEnd.GAVE_UP, f"{rules.gave_up}{said}")
    remark = f"{_CUT_OFF} Go on in smaller steps: {rules.smaller_steps}" if is_cut else rules.go_on
    return state.model_copy(update={"idle_turns": state.idle_turns + 1, "remarks": (*state.remarks, remark)})


def _after_tool(state: LoopState, note: ToolNote) -> LoopState:
    use = next((use for use in state.pending if use.id == note.tool_use_id), None)
    if use is None:
        return state
    done = state.model_copy(
        update={
            "tool_calls": state.tool_calls + 1,
            "pending": tuple(other for other in state.pending if other is not use),
            "outcomes": (*state.outcomes, ShownOutcome(tool_use_id=use.id, text=note.text)),
            "unread": state.unread + (note.size if note.text is None else len(note.text.encode("utf-8", "surrogatepass"))),
        }
    )
    if note.product is not None:
        return ended(done.model_copy(update={"product": note.product}), AgentEnd.DONE, note.summary or "It is done.")
    return _circles(done, use, note)


def _circles(state: LoopState, use: ToolUseNote, note: ToolNote) -> LoopState:
    fingerprint = f"{use.name}:{use.input_digest[:16]}:{note.digest[:16]}"
    fingerprints = (*state.fingerprints, fingerprint)[-CIRCLE_WINDOW:]
    seen = state.model_copy(update={"fingerprints": fingerprints})
    times = Counter(fingerprints)[fingerprint]
    if times >= CIRCLE_END:
        return ended(
            seen, AgentEnd.CIRCLES, f"The model went round in circles: {times} times the same with the same outcome ({use.summary})."
        )
    if times == CIRCLE_HINT:
        return seen.model_copy(update={"remarks": (*seen.remarks, _CIRCLE.format(times=times, what=use.summary))})
    return seen
