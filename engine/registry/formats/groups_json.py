"""`groups.json` (seed 000 §8.5): `{"groups": [ToolGroup, …]}`."""

from pathlib import Path

from pydantic import ValidationError

from engine.registry.formats.document import Parsed, faults_of, members, read_object, unknown_fields
from toolagent.contracts.manifest import ToolGroup
from toolagent.contracts.records import CatalogFault

__all__ = ["FILE_NAME", "parse"]

FILE_NAME = "groups.json"


def parse(path: Path) -> Parsed[ToolGroup]:
    """The groups of the file. The first of two groups with one id counts."""
    document = read_object(path)
    groups = members(document, "groups", path.name) if isinstance(document, dict) else document
    if isinstance(groups, CatalogFault):
        return Parsed(faults=[groups], readable=False)
    parsed = Parsed[ToolGroup]()
    for index, item in enumerate(groups):
        where = f"$.groups[{index}]"
        try:
            group = ToolGroup.model_validate(item)
        except ValidationError as error:
            parsed.faults.extend(faults_of(error, path.name, where))
            continue
        if group.group_id in parsed.entries:
            parsed.faults.append(
                CatalogFault(file=path.name, field=f"{where}.group_id", reason=f"There is already a group {group.group_id!r}.")
            )
            continue
        parsed.faults.extend(unknown_fields(group, item, path.name, where))
        parsed.entries[group.group_id] = group
        parsed.mentioned.add(group.group_id)
    return parsed
