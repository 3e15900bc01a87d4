"""Models by the protocol they speak: one file each, and one line here."""

from collections.abc import Callable, Mapping

from engine.roles.provider import ModelProvider
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers import anthropic

PROVIDERS: Mapping[str, Callable[[ProviderOptions], ModelProvider]] = {
    "anthropic": anthropic.provider,
}
