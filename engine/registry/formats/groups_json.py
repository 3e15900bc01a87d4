"""`groups.json`: `{"groups": [ToolGroup, …]}`."""

from pathlib import Path
from typing import Self, cast

from pydantic import model_validator

from engine.registry.formats.document import Parsed
from engine.registry.formats.listed import dump_list, parse_list
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.groups import ToolGroup
from toolagent.core.catalog.lifecycles import lifecycle_fault

FILE_NAME = "groups.json"
_ALWAYS = frozenset({"group_id", "name", "description", "category", "tool_ids", "usage_order", "usage_example"})


class _Listed(ToolGroup):
    """A group whose lifecycle is checked at import, before a session is opened."""

    @model_validator(mode="after")
    def _require_lifecycle(self) -> Self:
        if (fault := lifecycle_fault(self)) is not None:
            raise ValueError(fault)
        return self


def parse(path: Path, vault: SecretVault) -> Parsed[ToolGroup]:
    parsed = parse_list(path, vault, "groups", "group_id", _Listed)
    return cast("Parsed[ToolGroup]", parsed)


def dump(state: CatalogState) -> Document | None:
    known = ((group.group_id, group, raw) for group, raw in state.groups)
    return dump_list(known, state.files.get(FILE_NAME), "groups", _ALWAYS)


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
