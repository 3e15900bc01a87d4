"""Times as the tables hold them: by the clock of this machine, and by that of the database."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, String, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime | None = None) -> str:
    """This moment or now as UTC with six digits of seconds: sorts as text, reads back with `datetime.fromisoformat`."""
    return (moment or now()).astimezone(UTC).isoformat(timespec="microseconds")


def database_time(shift: timedelta = timedelta()) -> ColumnElement[str]:
    """The time by the clock of the database, as `timestamp` writes it."""
    return _DatabaseTime(literal(shift.total_seconds()))


class _DatabaseTime(FunctionElement[str]):
    type = String()
    inherit_cache = True


@compiles(_DatabaseTime, "postgresql")
def _in_postgres(element: _DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    seconds = compiler.process(element.clauses, **options)
    moment = f"timezone('UTC', clock_timestamp() + make_interval(secs => {seconds}))"
    return f"""(to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.US') || '+00:00')"""


@compiles(_DatabaseTime, "sqlite")
def _in_sqlite(element: _DatabaseTime, compiler: SQLCompiler, **options: Any) -> str:
    """SQLite knows milliseconds only."""
    return f"(strftime('%Y-%m-%dT%H:%M:%f', 'now', {compiler.process(element.clauses, **options)} || ' seconds') || '000+00:00')"
