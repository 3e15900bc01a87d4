"""Ended processes are counted once, however many tools share them; requested hosts are named until examples are withheld."""

from datetime import UTC, datetime

from engine.making.gate.sightings import Sightings
from tests.making.gate.conftest import Notes
from toolagent.contracts.audit import AuditEntry
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


def asking(*refusals: str) -> AuditEntry:
    return AuditEntry(at=STARTED, action="call", tool_id="tool", host="here", refusals=refusals)


def test_that_more_was_asked_for_than_is_listed_is_no_host() -> None:
    sightings = Sightings(Notes())
    sightings.note(asking("a.test:443: not allowed", "::1:80: not allowed", "5 more connections were asked for, and are not listed"))
    assert sightings.account().hosts == ("a.test:443", "::1:80")


def test_what_is_asked_for_after_something_was_withheld_is_not_named_however_late() -> None:
    sightings = Sightings(Notes())
    sightings.note(asking("a.test:443: not allowed"))
    sightings.withhold()
    assert not sightings.account().unnamed
    sightings.note(asking("a.test:443: not allowed"))
    assert not sightings.account().unnamed
    for secret in ("one", "two"):
        sightings.note(asking(f"{secret}.test:443: not allowed"))
    assert (sightings.account().hosts, sightings.account().unnamed) == (("a.test:443",), True)
