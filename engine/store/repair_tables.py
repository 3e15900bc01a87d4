"""The tables of repairs from production.

Times are by the clock of the database: those of the hosts may differ.
"""

from sqlalchemy import Column, Index, Integer, String, Table, Text

from engine.store.tables import METADATA, key, required

_TOOL_ID = String(128)
_TIME = String(32)

production_repairs = Table(
    "production_repairs",
    METADATA,
    key("tool_id", _TOOL_ID),
    key("version", String(64)),
    # Counts from 1; with tool and version it gives the id of the task.
    key("attempt", Integer),
    # Empty for a mere alert.
    required("task_id", String(32)),
    required("reason", Text),
    # What calls get meanwhile (`refuse`, `previous` or `serve`), and the previous version.
    required("meanwhile", String(16)),
    Column("previous", String(64)),
    # The input of its workflow, so that any host can start it again.
    Column("request", Text),
    required("opened_at", _TIME),
    Column("ended_at", _TIME),
    Column("outcome", String(16)),
    Index("ix_production_repairs_task_id", "task_id"),
)

poisonous_inputs = Table(
    "poisonous_inputs",
    METADATA,
    key("tool_id", _TOOL_ID),
    key("version", String(64)),
    # A hash of the parameters as records have them: secrets are masked.
    key("input", String(64)),
    # JSON: the calls that ended the process, by id, with the number of times each was sent.
    required("crashes", Text),
    # NULL if too large.
    Column("params", Text),
    required("error", Text),
    required("first_at", _TIME),
    # NULL while the input has not ended the process often enough.
    Column("quarantined_at", _TIME),
)
