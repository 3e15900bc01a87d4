"""A tool with dependencies is called only while these can be called."""

import pytest

from engine.calls.checks.dependencies import unmet_dependencies
from engine.store.database import Database
from tests.parts import tool_registry
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolDependency, ToolManifest, ToolStatus


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ([("there", "*"), ("there", "^1.0"), ("there", "1.2.0")], []),
        ([("there", "^2.0")], ["there"]),
        ([("there", "9.9.9")], ["there"]),
        (
            [("absent", "*"), ("there", "*"), ("asleep", "*"), ("asleep", "1.0.0"), ("asleep", "^1.0")],
            ["absent", "asleep", "asleep", "asleep"],
        ),
    ],
)
async def test_what_is_missing_or_inactive_is_named(database: Database, wanted: list[tuple[str, str]], missing: list[str]) -> None:
    registry = tool_registry(database)
    await registry.register(ToolManifest(tool_id="there", name="There", version="1.2.0"))
    await registry.register(ToolManifest(tool_id="asleep", name="Asleep", status=ToolStatus.INACTIVE))
    needs = tuple(ToolDependency(tool_id=tool_id, version=version) for tool_id, version in wanted)
    refused = await unmet_dependencies(ToolManifest(tool_id="a", name="A", dependencies=needs), registry)
    error = refused.error if refused else None
    if error is None:
        assert missing == []
        return
    assert error.type is ErrorType.DEPENDENCY_ERROR
    assert isinstance(error.details, dict)
    listed = error.details["dependencies"]
    assert isinstance(listed, list)
    assert [one["tool_id"] for one in listed if isinstance(one, dict)] == missing
