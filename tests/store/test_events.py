"""Events are found by an index."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Engine, event

from engine.store.clock import now
from engine.store.database import Database
from engine.store.events import EventTable
from toolagent.contracts.records import Event, EventType


async def test_alerts_are_found_by_type_and_time(sqlite_url: str) -> None:
    """Most events are of calls, and most others are no alerts."""
    asked: list[tuple[str, tuple[object, ...]]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Sequence[object], *_: object) -> None:
        asked.append((statement, tuple(parameters)))

    database = Database(sqlite_url)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        await EventTable(database).alerts(timedelta(days=1), 20)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    statement, parameters = asked[-1]
    async with database.read() as connection:
        plan = (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)).all()
    await database.close()
    assert "ix_events_type_at (event_type=? AND at>?)" in str(plan)


async def test_a_tool_that_ends_again_and_again_hides_no_other_alert(database: Database) -> None:
    events, at = EventTable(database), now()
    flaps = [
        Event(event_id=f"health_alert:{number}", event_type=EventType.HEALTH_ALERT, tool_id="stop", at=at + timedelta(seconds=number))
        for number in range(3)
    ]
    repairs = [
        Event(event_id=f"repair:{number}", event_type=EventType.HEALTH_ALERT, tool_id="stop", at=at - timedelta(seconds=number))
        for number in (1, 2)
    ]
    sessions = [
        Event(event_id=f"session {number}", event_type=EventType.SESSION_ALERT, tool_id="stop", at=at - timedelta(minutes=number))
        for number in (1, 2)
    ]
    await events.add((*flaps, *repairs, *sessions))
    shown = [alert.event_id for alert in await events.alerts(timedelta(days=1), 4)]
    assert shown == ["health_alert:2", "repair:1", "session 1", "session 2"]
