"""Events are found without a look at all of them."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Engine, event

from engine.store.database import Database
from engine.store.events import EventTable


async def test_alerts_are_found_by_type_and_time(sqlite_url: str) -> None:
    """Most events are of calls, and most others no alerts."""
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
