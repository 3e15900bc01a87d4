"""The model that agents of this host ask, what it is told first, and what it costs."""

import asyncio
import time
from dataclasses import dataclass, field

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from engine.roles.prices import Prices
from engine.roles.prompts import Prompt, PromptMissing, Prompts
from engine.roles.provider import ModelProvider
from toolagent_service import step_names

_KEPT_S = 1.0
"""A prompt whose file is changed holds from then."""


@dataclass(frozen=True, slots=True)
class Models:
    """`provider` is None where no model is set."""

    provider: ModelProvider | None
    prompts: Prompts
    prices: Prices
    _kept: dict[str, tuple[float, Prompt]] = field(default_factory=dict[str, tuple[float, Prompt]], init=False)

    def asked(self, why: str = "") -> ModelProvider:
        """Raises ApplicationError where none is set; `why` a model is asked at all goes first: that, or the setting, has to be mended."""
        if self.provider is None:
            unset = "No model is set that could write it. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or TOOL_AGENT_MODEL_BASE_URL)."
            raise refusal(f"{why}\n\n{unset}".strip())
        return self.provider

    async def prompt(self, name: str) -> Prompt:
        """Raises ApplicationError: asking again does not bring it."""
        try:
            return await self._read(name)
        except PromptMissing as missing:
            raise refusal(
                f"{missing} The service takes its own prompts where the folder TOOL_AGENT_DATA_DIR has no folder prompts."
            ) from missing

    async def text_of(self, prompt: str) -> str:
        """Nothing where there is none: the first turn says so."""
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
    """Asking again brings nothing. It is the agent's reason, and no fault of the service that its log would have to explain."""
    return ApplicationError(message, *details, type=step_names.MODEL_REFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN)
