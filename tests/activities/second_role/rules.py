"""The rules of a librarian."""

from toolagent_service.agents.loop import Rules

__all__ = ["RULES"]

RULES = Rules(
    final_tool="answer",
    go_on="Nobody was answered yet.",
    smaller_steps="answer in a word.",
    gave_up="The librarian went home.",
)
