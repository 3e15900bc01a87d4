"""How times are written down."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """UTC with six digits of seconds: sorts as text, reads back with `datetime.fromisoformat`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
