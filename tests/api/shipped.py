"""The shipped catalog, for tests of the front door."""

import json

from engine.runtimes.builtin import builtin_tools, entries
from engine.runtimes.builtin.options import BuiltinOptions
from tests.api.conftest import House
from tests.conftest import ROOT
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource


async def stock(house: House) -> None:
    """Register all its tools and groups; none of them runs."""
    for tool in json.loads((ROOT / "data/registry.json").read_text("utf-8"))["tools"]:
        await house.registry.register(ToolManifest.model_validate(tool), (LocalSource(host_dir=f"tools/local/{tool['tool_id']}"),))
    for entry in entries(builtin_tools(BuiltinOptions())):
        await house.registry.register(entry.manifest, entry.sources)
    groups = json.loads((ROOT / "data/groups.json").read_text("utf-8"))["groups"]
    await house.groups.replace([ToolGroup.model_validate(group) for group in groups])
