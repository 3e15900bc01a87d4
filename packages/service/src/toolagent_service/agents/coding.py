"""The rules of the coding role: an agent that delivers a candidate, and gets another round if it does not pass."""

from toolagent_service.agents.loop import Rules
from toolagent_service.agents.trimming import cut
from toolagent_service.contracts.agent import AgentRequest, LoopState

CODING = Rules(
    final_tool="register_tool",
    go_on=(
        "You used no tool. The task is done only when register_tool has been called and the submitted tool passes the checks. "
        "Go on with the next step, or, if it cannot be done, say in plain words what stands in the way."
    ),
    smaller_steps="write long files in parts, the first with write_file and the rest with mode append.",
    gave_up="The model stopped without submitting a tool.",
)

LONGEST_EVIDENCE = 12_000


def another_round(request: AgentRequest, state: LoopState, evidence: str) -> LoopState | None:
    """The state after a candidate that did not pass, in which the model is told why. None if all rounds are used."""
    if state.round >= request.limits.rounds:
        return None
    told = f"The submitted tool did not pass the checks. Mend it and call {CODING.final_tool} again."
    return state.model_copy(
        update={
            "round": state.round + 1,
            "end": None,
            "reason": "",
            "product": None,
            "pending": (),
            "fingerprints": (),
            "idle_turns": 0,
            "remarks": (
                *state.remarks,
                f"{told}\n\n{cut(evidence, LONGEST_EVIDENCE)}",
            ),
        }
    )
