"""`groups.json`: `{"groups": [ToolGroup, …]}`."""

from pathlib import Path

from engine.registry.formats.document import Parsed
from engine.registry.formats.listed import dump_list, parse_list
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.manifest import ToolGroup

FILE_NAME = "groups.json"
_ALWAYS = frozenset({"group_id", "name", "description", "category", "tool_ids", "usage_order", "usage_example"})


def parse(path: Path, vault: SecretVault) -> Parsed[ToolGroup]:
    return parse_list(path, vault, "groups", "group_id", ToolGroup)


def dump(state: CatalogState) -> Document | None:
    known = ((group.group_id, group, raw) for group, raw in state.groups)
    return dump_list(known, state.files.get(FILE_NAME), "groups", _ALWAYS)


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
