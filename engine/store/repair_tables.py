"""The tables of repairs from production. Times are by the clock of the database: those of the hosts may differ."""

from sqlalchemy import Column, Index, Integer, String, Table, Text

from engine.store.tables import METADATA

_TOOL_ID = String(128)
_TIME = String(32)

production_repairs = Table(
    "production_repairs",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("version", String(64), primary_key=True),
    # Counts from 1; with tool and version it gives the id of the task.
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    # Empty: somebody was only told.
    Column("task_id", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    # What calls get meanwhile: `refuse`, `previous` or `serve`, and the version before this one.
    Column("meanwhile", String(16), nullable=False),
    Column("previous", String(64)),
    # What its workflow is started with, so that any host can do it again.
    Column("request", Text),
    Column("opened_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    Column("outcome", String(16)),
    Index("ix_production_repairs_task_id", "task_id"),
)

poisonous_inputs = Table(
    "poisonous_inputs",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("version", String(64), primary_key=True),
    # A hash of the parameters as records have them: secrets are masked.
    Column("input", String(64), primary_key=True),
    # The calls in which the process ended, by id: how often it was asked in each. JSON.
    Column("crashes", Text, nullable=False),
    # Null: too large to be kept.
    Column("params", Text),
    Column("error", Text, nullable=False),
    Column("first_at", _TIME, nullable=False),
    # Null: it has not ended the process often enough.
    Column("quarantined_at", _TIME),
)
