"""The rules of the coding role: an agent that puts a candidate down, is told why it did not pass, and has another round."""

from toolagent_service.agents.loop import Rules
from toolagent_service.contracts.agent import AgentRequest, LoopState

CODING = Rules(
    final_tool="register_tool",
    go_on=(
        "You used no tool. The task is done only when register_tool has been called and what it puts down passes the checks. "
        "Go on with the next step, or, if it cannot be done, say in plain words what stands in the way."
    ),
    smaller_steps="write long files in parts, the first with write_file and the rest with mode append.",
    gave_up="The model stopped without putting down a tool.",
)

LONGEST_EVIDENCE = 12_000


def another_round(request: AgentRequest, state: LoopState, evidence: str) -> LoopState | None:
    """A candidate did not pass: the state to go on from, in which the model is told why. None when all rounds are used."""
    if state.round >= request.limits.rounds:
        return None
    told = f"What you put down did not pass the checks. Mend it and call {CODING.final_tool} again."
    shown = evidence if len(evidence) <= LONGEST_EVIDENCE else f"{evidence[:LONGEST_EVIDENCE]}… ({len(evidence):,} characters)"
    return state.model_copy(
        update={
            "round": state.round + 1,
            "end": None,
            "reason": "",
            "put_down": None,
            "pending": (),
            "fingerprints": (),
            "idle_turns": 0,
            "remarks": (
                *state.remarks,
                f"{told}\n\n{shown}",
            ),
        }
    )
