"""Who is told that a running tool has become unhealthy."""

from datetime import UTC, datetime, timedelta

from engine.runtimes.running.route_board import RouteBoard
from engine.runtimes.runtime import Running
from tests.runtimes.conftest import Routes, entry_of
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.routes import RunState

TOOL = entry_of()
SECRET = "sk-abcdefghijklmnop1234"  # noqa: S105 - has the form of one


class Told:
    """Records the events of a board."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.board = RouteBoard(Routes(), "here", self.hear)

    async def hear(self, event: Event) -> None:
        self.events.append(event)

    async def start(self, pid: int) -> None:
        await self.board.starting(TOOL, 0)
        await self.board.running(TOOL, 0, Running(f"http://127.0.0.1:{pid}", datetime.now(UTC), pid=pid))

    async def end(self, state: RunState, error: str | None = None) -> None:
        await self.board.ended("versatile", "1.0.0", state, error)


async def test_a_tool_that_ends_by_itself_is_told_of_once_with_when_it_was_last_well() -> None:
    told = Told()
    await told.start(1)
    before = datetime.now(UTC)
    told.board.answered("versatile")
    await told.end(RunState.ERROR, f"ended by SIGKILL; key {SECRET}")
    await told.end(RunState.ERROR, "It has ended.")
    (event,) = told.events
    assert (event.event_type, event.tool_id) == (EventType.HEALTH_ALERT, "versatile")
    assert isinstance(event.details, dict)
    assert {*event.details} == {"tool_id", "error", "last_healthy"}
    assert str(event.details["error"]).startswith("ended by SIGKILL")
    assert SECRET not in event.model_dump_json()
    assert timedelta(0) <= datetime.fromisoformat(str(event.details["last_healthy"])) - before < timedelta(minutes=1)


async def test_each_run_that_ends_is_another_event() -> None:
    told = Told()
    for pid in (1, 2):
        await told.start(pid)
        await told.end(RunState.ERROR)
    assert len({event.event_id for event in told.events}) == 2


async def test_nobody_is_told_of_a_tool_that_was_stopped_or_never_ran() -> None:
    told = Told()
    await told.start(1)
    await told.end(RunState.STOPPED)
    await told.board.starting(TOOL, 0)
    await told.end(RunState.ERROR, "It does not start.")
    assert told.events == []
