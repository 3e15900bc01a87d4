"""By what calls name the living sessions of groups."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op
from pydantic import JsonValue

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_UNNAMED = sa.text("ended_at IS NULL AND unnamed IS NOT NULL")
_TEXTS = (("session_names", "mark", 32), ("session_names", "session_id", 80), ("group_sessions", "unnamed", 100))


def upgrade() -> None:
    op.create_table(
        "session_names",
        sa.Column("mark", sa.String(length=32), nullable=False),
        sa.Column("session_id", sa.String(length=80), nullable=False),
        sa.PrimaryKeyConstraint("mark", "session_id", name=op.f("pk_session_names")),
    )
    op.create_index("ix_session_names_session_id", "session_names", ["session_id"])
    # Hosts of the version before write rows, too, while others are updated: theirs have the default.
    op.add_column("group_sessions", sa.Column("unnamed", sa.String(length=100), server_default="", nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        for table, column, length in _TEXTS:
            op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({length}) COLLATE "C"')
    _fill()
    columns = ["group_id", "unnamed"]
    op.create_index("ix_group_sessions_unnamed", "group_sessions", columns, sqlite_where=_UNNAMED, postgresql_where=_UNNAMED)


def downgrade() -> None:
    op.drop_index("ix_group_sessions_unnamed", "group_sessions")
    op.drop_column("group_sessions", "unnamed")
    op.drop_table("session_names")


def _fill() -> None:
    """Rows that cannot be read here keep the default: they are read when they are asked for."""
    connection = op.get_bind()
    living = connection.execute(sa.text("SELECT session_id, request, document FROM group_sessions WHERE ended_at IS NULL")).all()
    for session_id, request, document in living:
        try:
            group, view = json.loads(request)["group"], json.loads(document)
            marks = {*_marks(group, view["launched"])} if view.get("launched") is not None else None
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        unnamed = {"session_id": session_id, "unnamed": None if marks is not None else view.get("launch_call_id") or ""}
        connection.execute(sa.text("UPDATE group_sessions SET unnamed = :unnamed WHERE session_id = :session_id"), unnamed)
        if marks:
            rows = [{"mark": mark, "session_id": session_id} for mark in sorted(marks)]
            connection.execute(sa.text("INSERT INTO session_names (mark, session_id) VALUES (:mark, :session_id)"), rows)


def _marks(group: Any, launched: JsonValue) -> Iterator[str]:
    """As `toolagent_service.groups.roles` made them at this revision."""
    paths: set[str] = {path for step in group["steps"] for path in step.get("bindings", {}).values()}
    for path in paths:
        found, is_there = launched, True
        for name in path.split(".")[1:]:
            is_there = is_there and isinstance(found, dict) and name in found
            found = found[name] if isinstance(found, dict) and is_there else None
        if is_there:
            told = json.dumps([group["group_id"], path, _alike(found)], sort_keys=True)
            yield hashlib.sha256(told.encode()).hexdigest()[:32]


def _alike(value: JsonValue) -> JsonValue:
    match value:
        case bool():
            return int(value)
        case float():
            return int(value) if value.is_integer() else value
        case list():
            return [_alike(one) for one in value]
        case dict():
            return {name: _alike(one) for name, one in value.items()}
        case _:
            return value
