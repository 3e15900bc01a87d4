"""What an agent asks for in its own words, and what it is told."""

from typing import Literal

from toolagent.contracts.contract import Contract

__all__ = ["ActionAnswer", "Observation"]


class Observation(Contract):
    """How the action ended, for a model to read. `tool_id` is empty when none was named."""

    tool_id: str
    status: Literal["success", "error"]
    content: str
    note: str = ""
    """What else is to be known: actions in the same text that were not called."""


class ActionAnswer(Contract):
    """The observation, and the text around the block. `call_id` is empty when nothing was called."""

    response_text: str
    """What stood before and after the first `<ACTION>` block."""
    observation: Observation
    call_id: str = ""
