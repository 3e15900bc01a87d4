"""What became of processes is counted by process, whoever shares it."""

from datetime import UTC, datetime

from engine.making.gate.sightings import Sightings
from tests.making.gate.conftest import Notes
from toolagent.contracts.routes import RunState, ToolRoute

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
TOOLS = ("group_one", "group_two")


async def told(sightings: Sightings, state: RunState, pid: int | None = None) -> None:
    for tool_id in TOOLS:
        await sightings.save(ToolRoute(tool_id=tool_id, state=state, pid=pid, started_at=STARTED if pid else None), "1.0.0")


async def test_the_death_of_a_process_that_tools_share_is_one() -> None:
    sightings = Sightings(Notes())
    await told(sightings, RunState.RUNNING, 100)
    await told(sightings, RunState.ERROR)
    assert sightings.account().deaths == 1
    await told(sightings, RunState.RUNNING, 101)
    await told(sightings, RunState.STOPPED)
    assert sightings.account().deaths == 1
    await told(sightings, RunState.RUNNING, 102)
    await told(sightings, RunState.ERROR)
    assert sightings.account().deaths == 2


async def test_that_we_kill_it_is_none_whichever_tool_it_was_killed_for() -> None:
    sightings = Sightings(Notes())
    await told(sightings, RunState.RUNNING, 100)
    sightings.will_be_killed("group_one")
    await told(sightings, RunState.ERROR)
    assert sightings.account().deaths == 0
    await sightings.gone("group_two")
