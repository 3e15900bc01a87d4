"""Who answers without a model."""

from typing import Protocol

from toolagent_service.contracts.concierge import Reply

NO_MODEL = (
    "No model is set, and nothing here answers by rules: I cannot answer. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or "
    "TOOL_AGENT_MODEL_BASE_URL). Meanwhile POST /search_tools finds tools, GET /tools lists them, and POST /create_tool has one made."
)


class Concierge(Protocol):
    async def answer(self, message: str) -> Reply: ...
