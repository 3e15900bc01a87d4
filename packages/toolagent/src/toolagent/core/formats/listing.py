"""Many tools in one form."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from toolagent.contracts.formats import FormattedTools, ToolFormat
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats import FORMATS
from toolagent.core.formats.schemas import UnsuitableTool

__all__ = ["formatted"]


def formatted(manifests: Iterable[ToolManifest], names: Mapping[str, str], form: ToolFormat) -> FormattedTools:
    """The tools in the order of the manifests. `names` is a result of `vendor_names` that includes these tools."""
    name_of = {tool_id: name for name, tool_id in names.items()}
    tools, listed, left_out = list[dict[str, JsonValue]](), dict[str, str](), dict[str, str]()
    for manifest in manifests:
        name = name_of[manifest.tool_id]
        try:
            tools.append(FORMATS[form](manifest, name))
        except UnsuitableTool as why:
            left_out[manifest.tool_id] = str(why)
        else:
            listed[name] = manifest.tool_id
    return FormattedTools(tools=tuple(tools), names=listed, left_out=left_out)
