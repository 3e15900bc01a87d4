"""Who answers without a model."""

from typing import Protocol

from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool

NO_MODEL = (
    "No model is set, and nothing here answers by rules: I cannot answer. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or "
    "TOOL_AGENT_MODEL_BASE_URL). Meanwhile POST /search_tools finds tools, GET /tools lists them, and POST /create_tool has one made."
)


class RuledReply(Protocol):
    """`task`: what is to be begun for the message, if it asks for a tool to be made."""

    @property
    def reply(self) -> str: ...
    @property
    def tool_ids(self) -> tuple[str, ...]: ...
    @property
    def task(self) -> GithubDeploy | BuildTool | RepairTool | None: ...


class Concierge(Protocol):
    async def answer(self, message: str) -> RuledReply: ...
