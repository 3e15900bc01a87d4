"""Any model behind the Messages API: Anthropic's own, or an endpoint that speaks it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.roles.provider import ModelRefused, RefusedKind, unheard
from engine.roles.provider_options import ProviderOptions
from toolagent_service.contracts.model import ModelRequest, ModelTurn

if TYPE_CHECKING:
    from engine.roles.providers.anthropic_client import AnthropicClient


def provider(options: ProviderOptions) -> "AnthropicProvider":
    return AnthropicProvider(options)


class AnthropicProvider:
    """Keeps the protocol `ModelProvider`. Its client is loaded when it is first asked."""

    def __init__(self, options: ProviderOptions) -> None:
        self._options = options
        self._client: AnthropicClient | None = None
        self._loading = asyncio.Lock()

    @property
    def name(self) -> str:
        return "anthropic"

    @property
    def model(self) -> str:
        return self._options.model

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
    # Importing the client takes three seconds of a processor: a service that is asked for no model starts without it.
    from engine.roles.providers.anthropic_client import AnthropicClient

    return AnthropicClient(options)
