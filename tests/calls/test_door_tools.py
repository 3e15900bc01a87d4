"""Which tools a front door can call without a host."""

import pytest

from engine.calling.door_tools import is_served
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import BuiltinSource, LocalSource, McpSource, RemoteSource, ToolSource
from toolagent_service.contracts.lanes import LaneMode

FAR = RemoteSource(remote_url="http://127.0.0.1:1")
KEYED = RemoteSource(remote_url="http://127.0.0.1:1", remote_api_key="secret:KEY")
MCP = McpSource(tool_name="act", url="http://127.0.0.1:1/mcp?key=secret:KEY")
ECHO = BuiltinSource(handler="echo")


def entry(*sources: ToolSource, scope: SideEffectScope = SideEffectScope.NONE) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest(tool_id="far", name="Far", side_effect_scope=scope), sources=sources)


@pytest.mark.parametrize(
    ("sources", "served"),
    [
        ((ECHO,), True),
        ((FAR,), True),
        ((KEYED,), True),
        ((MCP,), True),
        ((BuiltinSource(handler="execute_script"),), False),
        ((LocalSource(host_dir="x"),), False),
        ((FAR, LocalSource(host_dir="x")), False),
        ((McpSource(tool_name="act", command=("python",)),), False),
        ((), False),
    ],
)
def test_a_door_serves_what_is_built_in_and_what_others_run(sources: tuple[ToolSource, ...], *, served: bool) -> None:
    assert is_served(LaneMode.ALL, {"echo"}, {"KEY": "x"}.get, entry(*sources)) is served


@pytest.mark.parametrize("source", [KEYED, MCP])
def test_a_key_that_only_hosts_have_is_left_to_them(source: ToolSource) -> None:
    assert not is_served(LaneMode.ALL, (), dict[str, str]().get, entry(source))


@pytest.mark.parametrize(("mode", "served"), [(LaneMode.OFF, []), (LaneMode.HARMLESS, ["none"]), (LaneMode.ALL, ["none", "network"])])
def test_only_what_may_take_the_lane_is_served(mode: LaneMode, served: list[str]) -> None:
    scopes = (SideEffectScope.NONE, SideEffectScope.NETWORK)
    assert [scope.value for scope in scopes if is_served(mode, (), dict[str, str]().get, entry(FAR, scope=scope))] == served
