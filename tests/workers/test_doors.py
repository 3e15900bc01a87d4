"""Front doors alone: their command line, what they refuse, and which tools they reach."""

import pytest

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import BuiltinSource, LocalSource, McpSource, RemoteSource, ToolSource
from toolagent_service.contracts.lanes import LaneMode
from workers.commands.doors import api_command, doors
from workers.commands.up import api
from workers.door_tools import is_taken
from workers.failures import CannotRun
from workers.settings.kept import DatabaseSettings
from workers.settings.temporal import TemporalSettings
from workers.settings.whole import Settings

FAR = RemoteSource(remote_url="http://127.0.0.1:1")
KEYED = RemoteSource(remote_url="http://127.0.0.1:1", remote_api_key="secret:KEY")
MCP = McpSource(tool_name="act", url="http://127.0.0.1:1/mcp?key=secret:KEY")
ECHO = BuiltinSource(handler="echo")


def entry(*sources: ToolSource, scope: SideEffectScope = SideEffectScope.NONE) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest(tool_id="far", name="Far", side_effect_scope=scope), sources=sources)


@pytest.mark.parametrize(
    "arguments", [["--processes"], ["--processes", "0"], ["--processes", "-1"], ["--processes", "65"], ["--processes", "2", "3"], ["2"]]
)
def test_other_arguments_are_wrong_usage(arguments: list[str]) -> None:
    assert api_command(arguments) is None


def test_one_process_needs_no_parent() -> None:
    assert [api_command([]), api_command(["--processes", "1"])] == [api, api]
    assert api_command(["--processes", "2"]) not in (None, api)


@pytest.mark.parametrize(
    ("address", "url", "named"),
    [
        (None, "postgresql+asyncpg://x", "TOOL_AGENT_TEMPORAL_ADDRESS"),
        ("127.0.0.1:1", None, "TOOL_AGENT_DATABASE_URL"),
        ("127.0.0.1:1", "sqlite+aiosqlite:////tmp/x.db", "PostgreSQL"),
    ],
)
async def test_what_several_doors_lack_is_said_before_any_is_started(address: str | None, url: str | None, named: str) -> None:
    settings = Settings(temporal=TemporalSettings(temporal_address=address), database=DatabaseSettings(database_url=url))
    with pytest.raises(CannotRun, match=named):
        await doors(settings, processes=2)


@pytest.mark.parametrize(
    ("sources", "taken"),
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
def test_a_door_takes_what_is_built_in_and_what_others_run(sources: tuple[ToolSource, ...], *, taken: bool) -> None:
    assert is_taken(LaneMode.ALL, {"echo"}, {"KEY": "x"}.get, entry(*sources)) is taken


@pytest.mark.parametrize("source", [KEYED, MCP])
def test_a_key_that_only_hosts_have_is_left_to_them(source: ToolSource) -> None:
    assert not is_taken(LaneMode.ALL, (), dict[str, str]().get, entry(source))


@pytest.mark.parametrize(("mode", "taken"), [(LaneMode.OFF, []), (LaneMode.HARMLESS, ["none"]), (LaneMode.ALL, ["none", "network"])])
def test_only_what_may_take_the_lane_is_taken(mode: LaneMode, taken: list[str]) -> None:
    scopes = (SideEffectScope.NONE, SideEffectScope.NETWORK)
    assert [scope.value for scope in scopes if is_taken(mode, (), dict[str, str]().get, entry(FAR, scope=scope))] == taken
