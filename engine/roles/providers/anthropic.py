"""Any model behind the Messages API: Anthropic's own, or an endpoint that speaks it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.roles.provider import ModelRefused, RefusedKind, unheard
from engine.roles.provider_options import ProviderOptions
from toolagent_service.contracts.model import ModelRequest, ModelTurn

if TYPE_CHECKING:
    from engine.roles.providers.anthropic_client import AnthropicClient


class AnthropicProvider:
    """A ModelProvider whose client is loaded at the first request."""

    name = "anthropic"

    def __init__(self, options: ProviderOptions) -> None:
        self.model = options.model
        self._options = options
        self._client: AnthropicClient | None = None
        self._loading = asyncio.Lock()

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None] = unheard) -> ModelTurn:
        if not self._options.api_key and not self._options.base_url:
            raise ModelRefused(
                RefusedKind.NO_KEY,
                "No key for the model is set: set TOOL_AGENT_MODEL_API_KEY, or name an endpoint that needs none with "
                "TOOL_AGENT_MODEL_BASE_URL.",
            )
        async with self._loading:
            if self._client is None:
                beat("loading the client")
                self._client = await asyncio.to_thread(_loaded, self._options)
        return await self._client.ask(request, beat, hear)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _loaded(options: ProviderOptions) -> "AnthropicClient":
    # Importing the client takes three seconds of a processor, which a service that asks no model saves.
    from engine.roles.providers.anthropic_client import AnthropicClient

    return AnthropicClient(options)
