"""A role of agents: its rules, its tools, and the site where they work."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from activities.agent_tool import AgentTool, AgentToolRefused, Used
from engine.roles.heard import Heard
from engine.runtimes.runtime import Progress
from engine.tasks.transcript import Transcript
from toolagent.core.suggestions import nearest
from toolagent_service.agents.conversation import OPENING
from toolagent_service.agents.loop import Rules
from toolagent_service.contracts.agent import ModelAsk, ToolRun
from toolagent_service.contracts.model import Text, ToolOffer, ToolUse

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class PendingUse:
    """A use of a tool by a model, before it runs. `key` is the same in all attempts; `say` reports progress."""

    run: ToolRun
    key: str
    remaining_s: float
    say: Progress


class AgentRole(ABC, Generic[S]):
    """`name` is the name on the wire."""

    def __init__(self, name: str, rules: Rules, tools: Sequence[AgentTool[Any, S]]) -> None:
        self.name, self.rules = name, rules
        self._tools = {tool.name: tool for tool in tools}
        self.offers: tuple[ToolOffer, ...] = tuple(tool.offer for tool in tools)
        """The same at each turn, so that a model can cache them."""

    @cached_property
    def offers_bytes(self) -> int:
        """Size of the offers as JSON."""
        return sum(len(offer.model_dump_json().encode("utf-8", "surrogatepass")) for offer in self.offers)

    @abstractmethod
    async def site(self, use: PendingUse) -> S:
        """The site where the tools work."""

    async def opening(self, conversation_id: str, kept: Transcript) -> str:
        """The first message to the model, the same in all attempts."""
        told = await kept.messages.read(conversation_id, OPENING, OPENING)
        return "\n".join(block.text for block in told[0].content if isinstance(block, Text))

    @asynccontextmanager
    async def listening(self, ask: ModelAsk, attempt: int) -> AsyncGenerator[Heard]:
        """Gives the listener to the text that the model writes in this attempt."""
        del ask, attempt
        yield Heard()

    def fault_in(self, use: ToolUse) -> str:
        """Why the use is refused, in words for the model; empty if it is not."""
        tool = self._tools.get(use.name)
        if tool is not None:
            return tool.fault(use.input)
        near = nearest(use.name, [*self._tools], 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return f"There is no tool {use.name[:80]!r}.{meant} There are: {', '.join(self._tools)}."

    async def use(self, given: dict[str, JsonValue], use: PendingUse) -> Used:
        """Raises AgentToolRefused for errors of the model, AgentToolUnavailable for outages."""
        tool = self._tools.get(use.run.name)
        if tool is None:
            raise AgentToolRefused(self.fault_in(ToolUse(id="", name=use.run.name)))
        return await tool.run(given, await self.site(use))


AnyRole = AgentRole[Any]
