"""A role of agents: its rules, the tools of its model, and what those work with."""

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
    """A use of a tool that is to be done. `key` names it in all attempts; `say` tells people what is being done."""

    run: ToolRun
    key: str
    remaining_s: float
    say: Progress


class AgentRole(ABC, Generic[S]):
    """One for each role that a host serves. `name` is that on the wire."""

    def __init__(self, name: str, rules: Rules, tools: Sequence[AgentTool[Any, S]]) -> None:
        self.name, self.rules = name, rules
        self._tools = {tool.name: tool for tool in tools}
        self.offers: tuple[ToolOffer, ...] = tuple(tool.offer for tool in tools)
        """The same at each turn, so that a model's cache of them holds."""

    @cached_property
    def offers_bytes(self) -> int:
        """What a model is told of the tools, as JSON."""
        return sum(len(offer.model_dump_json().encode("utf-8", "surrogatepass")) for offer in self.offers)

    @abstractmethod
    async def site(self, use: PendingUse) -> S:
        """What the tools work with."""

    async def opening(self, conversation_id: str, kept: Transcript) -> str:
        """What its model is told first: the same in all attempts."""
        told = await kept.messages.read(conversation_id, OPENING, OPENING)
        return "\n".join(block.text for block in told[0].content if isinstance(block, Text))

    @asynccontextmanager
    async def listening(self, ask: ModelAsk, attempt: int) -> AsyncGenerator[Heard]:
        """Gives what hears the text that the model writes in this attempt."""
        del ask, attempt
        yield Heard()

    def fault_in(self, use: ToolUse) -> str:
        """Why a use is not run, as the model is told; empty when it is."""
        tool = self._tools.get(use.name)
        if tool is not None:
            return tool.fault(use.input)
        near = nearest(use.name, [*self._tools], 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return f"There is no tool {use.name[:80]!r}.{meant} There are: {', '.join(self._tools)}."

    async def use(self, given: dict[str, JsonValue], use: PendingUse) -> Used:
        """Raises AgentToolRefused for what the model got wrong, AgentToolUnavailable for what does not work here."""
        tool = self._tools.get(use.run.name)
        if tool is None:
            raise AgentToolRefused(self.fault_in(ToolUse(id="", name=use.run.name)))
        return await tool.run(given, await self.site(use))


AnyRole = AgentRole[Any]
