"""Finds existing tools that may do what is asked, and can be tried without harm."""

import re
from collections.abc import Sequence

from engine.making.json_values import part
from engine.registry.registry import ToolRegistry
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolManifest, ToolStatus
from toolagent.contracts.task_specs import BuildTool, Example, GithubDeploy
from toolagent.core.schemas import FILE_PATH, mentions_format, with_defaults
from toolagent.validation.schemas import find_issues
from toolagent_service.contracts.making_steps import ExistingTool

_MOST = 3
_MOST_WORDS = 40
_SMALL = frozenset(
    {
        "all", "and", "are", "can", "does", "each", "for", "from", "give", "given", "has", "how", "into", "its", "make", "need", "one",
        "out", "please", "return", "returns", "that", "the", "then", "this", "tool", "use", "which", "with", "you",
    }
)  # fmt: skip
_WORD = re.compile(r"[a-z0-9]{3,}")
_HAN = re.compile(r"[\u3400-\u9fff]+")


async def existing_tools(spec: BuildTool | GithubDeploy, registry: ToolRegistry) -> tuple[ExistingTool, ...]:
    """At most three tools, the likeliest first; none if no example has an expected output."""
    if not any(example.expected_output != {} for example in spec.examples):
        return ()
    likely = await registry.resembling(words_of(f"{spec.tool_name.replace('_', ' ')} {spec.description}"))
    found: list[ExistingTool] = []
    for manifest in (entry.manifest for entry in likely if is_harmless(entry)):
        if len(found) < _MOST and gives(manifest, spec.examples) and await takes(manifest, spec.examples):
            found.append(ExistingTool(tool_id=manifest.tool_id, version=manifest.version))
    return tuple(found)


def words_of(text: str) -> tuple[str, ...]:
    """Search terms: words in Latin letters without the plural s, and pairs of Chinese characters, which have no spaces between words."""
    lowered = text.lower()
    latin = (word.removesuffix("s") if len(word) > 3 else word for word in _WORD.findall(lowered) if word not in _SMALL)
    han = (run[at : at + 2] for run in _HAN.findall(lowered) for at in range(max(len(run) - 1, 1)))
    return tuple(dict.fromkeys([*latin, *han]))[:_MOST_WORDS]


def is_harmless(entry: ToolEntry) -> bool:
    """Whether the tool may be tried: it changes nothing, costs nothing, needs no confirmation, and sends its input nowhere."""
    manifest = entry.manifest
    context = manifest.security_context
    return (
        manifest.status is ToolStatus.ACTIVE
        and manifest.side_effect_scope is SideEffectScope.NONE
        and manifest.permission_class is not PermissionClass.WRITE
        and not manifest.requires_confirmation
        and not manifest.cost_usd
        and not (context.network_access.allow_hosts or context.required_capabilities)
        and bool(entry.sources)
        and not any(source.traits.elsewhere for source in entry.sources)
    )


async def takes(manifest: ToolManifest, examples: Sequence[Example]) -> bool:
    """Whether the input schema accepts all inputs and names all their fields. False for a tool that takes files."""
    schema = manifest.input_schema
    named = part(schema.get("properties"))
    if mentions_format(schema, FILE_PATH) or not all(example.input.keys() <= named.keys() for example in examples):
        return False
    return not any([await find_issues(schema, with_defaults(schema, example.input)) for example in examples])


def gives(manifest: ToolManifest, examples: Sequence[Example]) -> bool:
    """Whether the output schema names every expected field, if it names fields."""
    named = manifest.output_schema.get("properties")
    if not isinstance(named, dict):
        return True
    return all(isinstance(example.expected_output, dict) and example.expected_output.keys() <= named.keys() for example in examples)
