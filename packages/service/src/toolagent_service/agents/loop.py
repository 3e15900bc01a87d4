"""The loop of a durable agent of any role: what comes next, and what the outcome of a step changes.

Pure: no clock, no I/O. The workflow does what `next_step` asks for, tells what came of it, and keeps the state. A state only grows by what
it has to remember; messages are in the store, by position. What one role does otherwise than another is in its `Rules`.
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
"""How often a model that does nothing is asked to go on."""

CIRCLE_WINDOW = 24
"""Of so many latest uses, those that are alike are counted: a circle of several steps shows too."""

CIRCLE_HINT = 3
CIRCLE_END = 6

MOST_REMARKS = 20
"""Pieces of guidance that may wait for the next turn."""

MOST_HEARD = 50
"""Pieces of guidance that an agent hears."""

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
    """Of one role. Texts are for its model."""

    final_tool: str
    """Puts down what the agent is to make, and ends it: nothing of a turn that comes after it is run."""
    go_on: str
    """Said after a turn that used no tool."""
    smaller_steps: str
    """Said where an answer was too long: how to make shorter ones."""
    gave_up: str
    """Why it ended that used no tool, though it was asked to: for people."""
    answers: bool = False
    """A turn that uses no tool and says something whole is what the agent was to make, and ends it."""
    limits: LimitNames = OF_A_TASK
    """Told where one is reached."""
    of_task: bool = True
    """Its conversations are tasks: people follow a log of each, and the task has the sums of what was paid."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask for a turn; then `after_model`."""

    ask: ModelAsk


@dataclass(frozen=True, slots=True)
class RunTools:
    """Do these one after the other, since one may need what the one before it made; then `after_tools` with all notes, or with each as it
    comes. The `refused` are notes already.
    """

    allowed: tuple[ToolRun, ...]
    refused: tuple[ToolNote, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing more is done."""

    result: AgentResult


def begin(request: AgentRequest, now_s: float) -> LoopState:
    """The first state, or the one to go on from. `now_s` is the workflow's time."""
    return request.resume_from or LoopState(started_s=now_s, unread=request.opening)


def next_step(request: AgentRequest, state: LoopState, now_s: float, names: LimitNames = OF_A_TASK) -> AskModel | RunTools | Finish:
    """What is to be done now. Never changes the state: asked again, it says the same."""
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
    """An answer came. What was said with `ask` is no longer to be said; guidance that came meanwhile is."""
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
    """Outcomes came, of all that was pending or of some. A note of what is not pending is passed over: it was told before."""
    for note in notes:
        state = _after_tool(state, note)
    return state


def is_answer(rules: Rules, note: ModelTurnNote) -> bool:
    """Whether a turn is what the agent was to make: `after_model` ends it then."""
    return rules.answers and bool(note.said) and not note.uses and note.stop_reason not in _NO_ANSWERS


def with_guidance(state: LoopState, guidance: Guidance) -> LoopState:
    """A person says something; the model is told with the next turn. What was heard before changes nothing."""
    if guidance.id in state.heard:
        return state
    return state.model_copy(
        update={
            "remarks": (*state.remarks, f"Guidance from the person who asked for this: {guidance.text}"),
            "heard": (*state.heard, guidance.id)[-MOST_HEARD:],
            # Somebody has looked: what went round may be meant, and silence is answered.
            "fingerprints": (),
            "idle_turns": 0,
        }
    )


def refusal_of(state: LoopState) -> str | None:
    """Why guidance cannot be taken now; None: it can."""
    if state.end is not None:
        return f"The agent has ended ({state.end.value})."
    if len(state.remarks) >= MOST_REMARKS:
        return f"{MOST_REMARKS} remarks wait for the model's next turn already; say more after it."
    return None


def ended(state: LoopState, end: AgentEnd, reason: str) -> LoopState:
    """The agent stops."""
    return state.model_copy(update={"end": end, "reason": reason})


def unanswered(state: LoopState, reason: str, kind: str = "") -> LoopState:
    """The model could not be asked. `kind` of obstacle; where answers that broke off used a budget up, it is that end's value."""
    return ended(state, AgentEnd(kind) if kind in _BUDGETS else AgentEnd.MODEL, reason)


def out_of_time(request: AgentRequest, state: LoopState, last: str = "", names: LimitNames = OF_A_TASK) -> LoopState:
    """The time was over before the model answered; `last` says why it did not the last time."""
    told = f" The model had not answered until then: {last}" if last else ""
    return ended(state, AgentEnd.WALL_TIME, f"{_time_is_over(request, names)}{told}")


def _time_is_over(request: AgentRequest, names: LimitNames) -> str:
    return f"The time of {request.limits.wall_s:g} s is over. Give more with {names.wall_s}."


def _finish(state: LoopState, end: AgentEnd, reason: str) -> Finish:
    return Finish(AgentResult(end=end, reason=reason, put_down=state.put_down, state=state))


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
    """What comes after the final tool is not done: it would change what was put down."""
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
    if note.put_down is not None:
        return ended(done.model_copy(update={"put_down": note.put_down}), AgentEnd.DONE, note.summary or "It is done.")
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
