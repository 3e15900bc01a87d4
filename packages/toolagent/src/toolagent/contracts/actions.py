"""Actions that agents write as text, and their answers."""

from typing import Literal

from toolagent.contracts.contract import Contract

__all__ = ["ActionAnswer", "Observation"]


class Observation(Contract):
    """How the action ended, for a model. `tool_id` is empty if the action names none."""

    tool_id: str
    status: Literal["success", "error"]
    content: str
    note: str = ""
    """Further information: actions in the same text that were not called."""


class ActionAnswer(Contract):
    """The observation, and the text around the block. `call_id` is empty if nothing was called."""

    response_text: str
    """The text before and after the first `<ACTION>` block."""
    observation: Observation
    call_id: str = ""
