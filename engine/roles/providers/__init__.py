"""Providers of models, by protocol: one file each, and one line here."""

from collections.abc import Callable, Mapping

from engine.roles.provider import ModelProvider
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic import AnthropicProvider

PROVIDERS: Mapping[str, Callable[[ProviderOptions], ModelProvider]] = {"anthropic": AnthropicProvider}
