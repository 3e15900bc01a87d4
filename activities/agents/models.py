"""The model of this host's agents, its prompts and its price."""

import asyncio
import time
from dataclasses import dataclass, field

from temporalio.exceptions import ApplicationError

from activities.failures import expected
from engine.roles.prices import Prices
from engine.roles.prompts import Prompt, PromptMissing, Prompts
from engine.roles.provider import ModelProvider
from toolagent_service import step_names

_KEPT_S = 1.0
"""A changed prompt file takes effect after this."""


@dataclass(frozen=True, slots=True)
class Models:
    """`provider` is None if no model is set."""

    provider: ModelProvider | None
    prompts: Prompts
    prices: Prices
    _kept: dict[str, tuple[float, Prompt]] = field(default_factory=dict[str, tuple[float, Prompt]], init=False)

    def asked(self, why: str = "") -> ModelProvider:
        """The provider. Raises ApplicationError if none is set; its message begins with `why` a model is needed."""
        if self.provider is None:
            unset = "No model is set that could write it. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or TOOL_AGENT_MODEL_BASE_URL)."
            raise refusal(f"{why}\n\n{unset}".strip())
        return self.provider

    async def prompt(self, name: str) -> Prompt:
        """Raises a final ApplicationError if it is missing."""
        try:
            return await self._read(name)
        except PromptMissing as missing:
            hint = "The service takes its own prompts where the folder TOOL_AGENT_DATA_DIR has no folder prompts."
            raise refusal(f"{missing} {hint}") from missing

    async def text_of(self, prompt: str) -> str:
        """Empty if the prompt is missing; the first turn raises that."""
        try:
            return (await self._read(prompt)).text
        except PromptMissing:
            return ""

    async def _read(self, name: str) -> Prompt:
        at, prompt = self._kept.get(name, (0.0, None))
        if prompt is None or time.monotonic() - at >= _KEPT_S:
            prompt = await asyncio.to_thread(self.prompts.get, name)
            self._kept[name] = time.monotonic(), prompt
        return prompt


def refusal(message: str, *details: str) -> ApplicationError:
    """A final failure that becomes the agent's reason. It is no error of the service, so the log does not explain it."""
    return expected(message, step_names.MODEL_REFUSED, *details, is_final=True)
