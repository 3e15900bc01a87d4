"""Who answers without a model."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from toolagent_service.contracts.concierge import Earlier, Reply

NO_MODEL = (
    "No model is set, and nothing here answers by rules: I cannot answer. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or "
    "TOOL_AGENT_MODEL_BASE_URL). Meanwhile POST /search_tools finds tools, GET /tools lists them, and POST /create_tool has one made."
)


class Concierge(Protocol):
    """`engine.concierge.concierge.Concierge` is one."""

    async def answer(self, message: str, *, recall: Callable[[], Awaitable[Earlier]]) -> Reply:
        """`recall` gives what the conversation came to before."""
        ...
