"""The tables: times are UTC ISO 8601 text with six digits of seconds, so that they sort; documents are JSON text as on the wire."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text, text
from sqlalchemy.types import TypeEngine

METADATA = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(column_0_label)s", "uq": "uq_%(table_name)s_%(column_0_name)s"},
)


def key(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]]) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def required(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], default: str | None = None) -> Column[Any]:
    """A column that is never NULL. `default`: what the database puts there."""
    return Column(name, kind, nullable=False, server_default=default)


_TOOL_ID = String(128)
_CONVERSATION_ID = String(200)
_TIME = String(32)
_UNNAMED = text("ended_at IS NULL AND unnamed IS NOT NULL")

tools = Table(
    "tools",
    METADATA,
    key("tool_id", _TOOL_ID),
    required("active_version", String(64)),
    required("category", String(64)),
    required("origin", String(200)),
    # The last imported catalog entry, `<hash>@<version>`. Decisions made here stay until the file changes.
    Column("imported", String(128)),
    Column("removed_at", _TIME),
    required("updated_at", _TIME),
    Index("ix_tools_category", "category"),
)

tool_versions = Table(
    "tool_versions",
    METADATA,
    key("tool_id", _TOOL_ID),
    key("version", String(64)),
    required("manifest", Text),
    # `raw`, here and below: the entry as its file has it, with unknown keys.
    Column("raw", Text),
    required("created_at", _TIME),
    # When it last became the active version; NULL if never.
    Column("activated_at", _TIME),
)

sources = Table(
    "sources",
    METADATA,
    key("tool_id", _TOOL_ID),
    key("version", String(64)),
    key("position", Integer),
    required("source", Text),
    Column("raw", Text),
)

groups = Table(
    "groups",
    METADATA,
    key("group_id", _TOOL_ID),
    required("document", Text),
    Column("raw", Text),
)

group_sessions = Table(
    "group_sessions",
    METADATA,
    key("session_id", String(80)),
    required("group_id", _TOOL_ID),
    required("state", String(16)),
    # A `SessionView`, and the input of its workflow, so that the workflow can be started again.
    required("document", Text),
    required("request", Text),
    required("opened_at", _TIME),
    required("updated_at", _TIME),
    # NULL while something may have to be stopped.
    Column("ended_at", _TIME),
    # NULL: `session_names` has what was launched. Otherwise the id of the launching call, empty if unknown.
    Column("unnamed", String(100), server_default=""),
    Index("ix_group_sessions_group_id", "group_id", "opened_at"),
    Index("ix_group_sessions_unnamed", "group_id", "unnamed", sqlite_where=_UNNAMED, postgresql_where=_UNNAMED),
    Index("ix_group_sessions_living", "group_id", sqlite_where=text("ended_at IS NULL"), postgresql_where=text("ended_at IS NULL")),
)

containers = Table(
    "containers",
    METADATA,
    key("container_id", String(128)),
    required("tool_id", _TOOL_ID),
    required("status", String(16)),
    required("document", Text),
    Column("raw", Text),
)

catalog_files = Table(
    "catalog_files",
    METADATA,
    # The id of the host that owns the data folder. Hosts on one database may have different folders.
    key("catalog", String(64)),
    key("file", String(64)),
    # The file without its entries, and the order of the entries.
    required("envelope", Text),
    required("entry_ids", Text),
)

routes = Table(
    "routes",
    METADATA,
    key("tool_id", _TOOL_ID),
    key("host", String(64)),
    required("version", String(64)),
    required("state", String(16)),
    required("route", Text),
    required("updated_at", _TIME),
)

calls = Table(
    "calls",
    METADATA,
    key("call_id", String(100)),
    required("tool_id", _TOOL_ID),
    required("version", String(64)),
    required("fingerprint", String(64)),
    required("workflow_id", Text),
    required("run_id", String(64)),
    required("params", Text),
    required("caller", Text),
    Column("caller_id", String(200)),
    Column("conversation_id", String(200)),
    Column("sent_at", _TIME),
    # How often it was sent, as far as is known. A repeatable call is sent again, a bounded number of times.
    required("sends", Integer, "0"),
    required("created_at", _TIME),
    Column("settled_at", _TIME),
    Column("is_success", Boolean),
    Column("error_type", String(32)),
    Column("execution_time", Float),
    Column("result", Text),
    Index("ix_calls_tool_id_created_at", "tool_id", "created_at"),
    Index("ix_calls_conversation_id", "conversation_id"),
    # For the frequent query of recently failed calls, which are few.
    Index("ix_calls_failed_at", "created_at", sqlite_where=text("error_type IS NOT NULL"), postgresql_where=text("error_type IS NOT NULL")),
)

claims = Table(
    "claims",
    METADATA,
    # A call that was accepted and has not ended, with what its caller sent. No API shows it.
    key("call_id", String(100)),
    required("fingerprint", String(64)),
    required("call", Text),
    # The front door that makes the call. Each new owner gets a greater number, so that a former owner notices after a long pause.
    required("owner", String(64)),
    required("number", Integer),
    Column("cancelled_at", _TIME),
    required("claimed_at", _TIME),
    Index("ix_claims_owner", "owner"),
)

doors = Table(
    "doors",
    METADATA,
    # One run of a process that answers HTTP.
    key("door", String(64)),
    # The host in the same process, if there is one.
    Column("host", String(64)),
    # The figures of its lane, as JSON.
    required("figures", Text),
    required("started_at", _TIME),
    required("seen_at", _TIME),
)

catalog_state = Table(
    "catalog_state",
    METADATA,
    key("slot", Integer),
    # Triggers increase it whenever tools, versions or sources change.
    required("number", BigInteger),
)

events = Table(
    "events",
    METADATA,
    key("event_id", String(200)),
    required("event_type", String(32)),
    required("tool_id", _TOOL_ID),
    Column("call_id", String(100)),
    required("at", _TIME),
    Column("details", Text),
    Index("ix_events_call_id", "call_id"),
    Index("ix_events_type_at", "event_type", "at"),
)

files = Table(
    "files",
    METADATA,
    key("file_id", String(40)),
    required("name", String(255)),
    required("media_type", String(127)),
    required("size", BigInteger),
    required("sha256", String(64)),
    required("created_at", _TIME),
    # When it was stored, or last named by a call. The sweep counts from here.
    required("used_at", _TIME),
    Index("ix_files_sha256", "sha256"),
    Index("ix_files_used_at", "used_at"),
)

file_references = Table(
    "file_references",
    METADATA,
    key("file_id", String(40)),
    # `call:<call id>`, `version:<tool id>@<version>`, `task:<task id>` or `candidates:<task id>`.
    key("holder", String(256)),
    Index("ix_file_references_holder", "holder"),
)

blob_chunks = Table(
    "blob_chunks",
    METADATA,
    key("sha256", String(64)),
    key("position", Integer),
    required("content", LargeBinary),
    required("stored_at", _TIME),
)

content_removals = Table(
    "content_removals",
    METADATA,
    # Bytes that a sweep is removing now. A writer of the same bytes waits, then checks that they are still there.
    key("sha256", String(64)),
    required("token", String(32)),
)

hosts = Table(
    "hosts",
    METADATA,
    key("host", String(64)),
    # One run of the host's process. `origin` names the machine and the state directory.
    required("instance", String(64)),
    required("origin", Text),
    required("buckets", Text),
    required("started_at", _TIME),
    # By the clock of the database: those of the hosts may differ.
    required("seen_at", _TIME),
    # Since when it takes no new calls, and the drain that its process reports as finished.
    Column("draining_at", _TIME),
    Column("drained_of", _TIME),
    # Calls under way by bucket, as of its last heartbeat.
    required("calls", Text, "{}"),
)

faults = Table(
    "faults",
    METADATA,
    key("catalog", String(64)),
    key("position", Integer),
    required("file", Text),
    required("field", Text),
    required("reason", Text),
)

tasks = Table(
    "tasks",
    METADATA,
    key("task_id", String(32)),
    required("type", String(32)),
    required("tool_id", _TOOL_ID),
    required("status", String(16)),
    required("spec", Text),
    required("description", Text),
    required("caller", Text),
    required("request_key", String(64)),
    required("tool_ids", Text),
    Column("stage", String(16)),
    required("stages", Text),
    required("progress", Text),
    required("reason", Text),
    Column("evidence", Text),
    Column("tried", Text),
    # Sums of the ledger, written in the same transaction as its lines.
    required("cost_usd", Float),
    required("tokens", BigInteger),
    required("unpriced_turns", Integer),
    required("created_at", _TIME),
    # By the clock of the database. A task that stops asking for a slot loses its turn.
    Column("asked_at", _TIME),
    Column("slot_at", _TIME),
    Column("started_at", _TIME),
    Column("ended_at", _TIME),
    # The host with its folder and containers, once it has begun.
    Column("host", String(64)),
    Index("ix_tasks_created_at", "created_at"),
    Index("ix_tasks_ended_at", "ended_at"),
    Index("ix_tasks_tool_id", "tool_id"),
)

task_notes = Table(
    "task_notes",
    METADATA,
    # The id of a task or of another conversation of an agent.
    key("task_id", _CONVERSATION_ID),
    key("position", Integer),
    # Identifies the event: a second note with the same key is ignored.
    required("key", String(200)),
    required("at", _TIME),
    required("kind", String(32)),
    required("text", Text),
    Column("payload", Text),
    Index("ix_task_notes_task_id_key", "task_id", "key", unique=True),
)

messages = Table(
    "messages",
    METADATA,
    key("conversation_id", _CONVERSATION_ID),
    key("position", Integer),
    required("key", String(200)),
    required("role", String(16)),
    # The JSON, or the file that holds it.
    Column("content", Text),
    Column("file_id", String(40)),
    Index("ix_messages_conversation_id_key", "conversation_id", "key", unique=True),
)

tool_outcomes = Table(
    "tool_outcomes",
    METADATA,
    key("conversation_id", _CONVERSATION_ID),
    # Identifies the use of the tool.
    key("key", String(200)),
    Column("content", Text),
    Column("file_id", String(40)),
)

model_turns = Table(
    "model_turns",
    METADATA,
    key("conversation_id", _CONVERSATION_ID),
    # Identifies the turn and the run.
    key("key", String(200)),
    # The position of its message.
    required("position", Integer),
    # The requested model, and the model that answered.
    required("provider", Text),
    required("asked_model", Text),
    required("model", Text),
    # `name@version`.
    required("prompt", Text),
    required("stop_reason", Text),
    required("input_tokens", BigInteger),
    required("output_tokens", BigInteger),
    required("cache_read_tokens", BigInteger),
    required("cache_write_tokens", BigInteger),
    # NULL if the price of the model is unknown.
    Column("cost_usd", Float),
    required("started_at", _TIME),
    required("ended_at", _TIME),
)

lost_steps = Table(
    "lost_steps",
    METADATA,
    # `<step> <call id>`.
    key("step", String(200)),
    required("times", Integer),
    required("lost_at", _TIME),
)

external_tables = Table(
    "external_tables",
    METADATA,
    key("source", String(40)),
    # An `ExternalTable`.
    required("document", Text),
)

evidence = Table(
    "evidence",
    METADATA,
    key("tool_id", _TOOL_ID),
    key("version", String(64)),
    required("task_id", String(32)),
    required("document", Text),
)

write_checks = Table(
    "write_checks",
    METADATA,
    # Written to check that the database is writable. Several slots, so that checks seldom wait for each other.
    key("slot", Integer),
    required("at", _TIME),
)
