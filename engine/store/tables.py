"""The tables. Times are UTC ISO 8601 text with six digits of seconds, so that they sort; documents are JSON text as on the wire."""

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text

__all__ = ["METADATA", "calls", "events", "faults", "files", "groups", "routes", "sources", "tool_versions", "tools"]

METADATA = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(column_0_label)s", "uq": "uq_%(table_name)s_%(column_0_name)s"},
)

_TOOL_ID = String(128)
_TIME = String(32)

tools = Table(
    "tools",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("active_version", String(64), nullable=False),
    Column("category", String(64), nullable=False),
    Column("origin", String(200), nullable=False),
    Column("removed_at", _TIME),
    Column("updated_at", _TIME, nullable=False),
    Index("ix_tools_category", "category"),
)

tool_versions = Table(
    "tool_versions",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("manifest", Text, nullable=False),
    Column("created_at", _TIME, nullable=False),
)

sources = Table(
    "sources",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("source", Text, nullable=False),
)

groups = Table(
    "groups",
    METADATA,
    Column("group_id", _TOOL_ID, primary_key=True),
    Column("document", Text, nullable=False),
)

routes = Table(
    "routes",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("host", String(64), primary_key=True),
    Column("version", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("route", Text, nullable=False),
    Column("updated_at", _TIME, nullable=False),
)

calls = Table(
    "calls",
    METADATA,
    Column("call_id", String(100), primary_key=True),
    Column("tool_id", _TOOL_ID, nullable=False),
    Column("version", String(64), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("run_id", String(64), nullable=False),
    Column("params", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("caller_id", String(200)),
    Column("conversation_id", String(200)),
    Column("sent_at", _TIME),
    Column("created_at", _TIME, nullable=False),
    Column("settled_at", _TIME),
    Column("is_success", Boolean),
    Column("error_type", String(32)),
    Column("execution_time", Float),
    Column("result", Text),
    Index("ix_calls_tool_id_created_at", "tool_id", "created_at"),
    Index("ix_calls_conversation_id", "conversation_id"),
)

events = Table(
    "events",
    METADATA,
    Column("event_id", String(200), primary_key=True),
    Column("event_type", String(32), nullable=False),
    Column("tool_id", _TOOL_ID, nullable=False),
    Column("call_id", String(100)),
    Column("at", _TIME, nullable=False),
    Column("details", Text),
    Index("ix_events_call_id", "call_id"),
)

files = Table(
    "files",
    METADATA,
    Column("file_id", String(40), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("media_type", String(127), nullable=False),
    Column("size", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("created_at", _TIME, nullable=False),
    Index("ix_files_sha256", "sha256"),
)

faults = Table(
    "faults",
    METADATA,
    Column("position", Integer, primary_key=True),
    Column("file", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("reason", Text, nullable=False),
)
