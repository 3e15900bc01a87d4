"""The tables. Times are UTC ISO 8601 text with six digits of seconds, so that they sort; documents are JSON text as on the wire."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text, text

METADATA = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "ix": "ix_%(column_0_label)s", "uq": "uq_%(table_name)s_%(column_0_name)s"},
)

_TOOL_ID = String(128)
_CONVERSATION_ID = String(200)
_TIME = String(32)
_UNNAMED = text("ended_at IS NULL AND unnamed IS NOT NULL")

tools = Table(
    "tools",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("active_version", String(64), nullable=False),
    Column("category", String(64), nullable=False),
    Column("origin", String(200), nullable=False),
    # Which catalog entry was imported last, `<hash>@<version>`: what somebody decided here stays until the files say something new.
    Column("imported", String(128)),
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
    # `raw` here and below: the entry as its file has it, with the keys that we do not know.
    Column("raw", Text),
    Column("created_at", _TIME, nullable=False),
    # When it last became the active one; a version that never was has none.
    Column("activated_at", _TIME),
)

sources = Table(
    "sources",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("raw", Text),
)

groups = Table(
    "groups",
    METADATA,
    Column("group_id", _TOOL_ID, primary_key=True),
    Column("document", Text, nullable=False),
    Column("raw", Text),
)

group_sessions = Table(
    "group_sessions",
    METADATA,
    Column("session_id", String(80), primary_key=True),
    Column("group_id", _TOOL_ID, nullable=False),
    Column("state", String(16), nullable=False),
    # A `SessionView`, and what its workflow was started with: so it is started again where somebody has ended it.
    Column("document", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("opened_at", _TIME, nullable=False),
    Column("updated_at", _TIME, nullable=False),
    # Empty while something may have to be stopped.
    Column("ended_at", _TIME),
    # NULL: what was launched is in `session_names`. Else the call of the launch; empty where that is not known.
    Column("unnamed", String(100), server_default=""),
    Index("ix_group_sessions_group_id", "group_id", "opened_at"),
    Index("ix_group_sessions_unnamed", "group_id", "unnamed", sqlite_where=_UNNAMED, postgresql_where=_UNNAMED),
    Index("ix_group_sessions_living", "group_id", sqlite_where=text("ended_at IS NULL"), postgresql_where=text("ended_at IS NULL")),
)

containers = Table(
    "containers",
    METADATA,
    Column("container_id", String(128), primary_key=True),
    Column("tool_id", _TOOL_ID, nullable=False),
    Column("status", String(16), nullable=False),
    Column("document", Text, nullable=False),
    Column("raw", Text),
)

catalog_files = Table(
    "catalog_files",
    METADATA,
    # Whose data folder it is: the id of a host. Hosts on one database may have different ones.
    Column("catalog", String(64), primary_key=True),
    Column("file", String(64), primary_key=True),
    # What stands in the file beside its entries, and the order of these.
    Column("envelope", Text, nullable=False),
    Column("entry_ids", Text, nullable=False),
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
    # How often it was sent, as far as is known: a call that may be repeated is, a bounded number of times.
    Column("sends", Integer, nullable=False, server_default="0"),
    Column("created_at", _TIME, nullable=False),
    Column("settled_at", _TIME),
    Column("is_success", Boolean),
    Column("error_type", String(32)),
    Column("execution_time", Float),
    Column("result", Text),
    Index("ix_calls_tool_id_created_at", "tool_id", "created_at"),
    Index("ix_calls_conversation_id", "conversation_id"),
    # Few calls fail: which tools had such ones lately is asked again and again.
    Index("ix_calls_failed_at", "created_at", sqlite_where=text("error_type IS NOT NULL"), postgresql_where=text("error_type IS NOT NULL")),
)

claims = Table(
    "claims",
    METADATA,
    # Of a call that was accepted and has not ended; with what its caller sent, which is shown nowhere.
    Column("call_id", String(100), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("call", Text, nullable=False),
    # The front door that has it in hand. Each other owner has a greater number: who wakes up after a long pause sees that it is not his.
    Column("owner", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("cancelled_at", _TIME),
    Column("claimed_at", _TIME, nullable=False),
    Index("ix_claims_owner", "owner"),
)

doors = Table(
    "doors",
    METADATA,
    # One life of a process that answers HTTP.
    Column("door", String(64), primary_key=True),
    # The host in the same process, if there is one.
    Column("host", String(64)),
    # Of its lane, as JSON.
    Column("figures", Text, nullable=False),
    Column("started_at", _TIME, nullable=False),
    Column("seen_at", _TIME, nullable=False),
)

catalog_state = Table(
    "catalog_state",
    METADATA,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    # Triggers count here whenever tools, versions or sources change.
    Column("number", BigInteger, nullable=False),
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
    Index("ix_events_type_at", "event_type", "at"),
)

files = Table(
    "files",
    METADATA,
    Column("file_id", String(40), primary_key=True),
    Column("name", String(255), nullable=False),
    Column("media_type", String(127), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("created_at", _TIME, nullable=False),
    # When it was put in, or last named by a call: what the sweep counts from.
    Column("used_at", _TIME, nullable=False),
    Index("ix_files_sha256", "sha256"),
    Index("ix_files_used_at", "used_at"),
)

file_references = Table(
    "file_references",
    METADATA,
    Column("file_id", String(40), primary_key=True),
    # `call:<call id>`, `version:<tool id>@<version>`, `task:<task id>` or `candidates:<task id>`.
    Column("holder", String(256), primary_key=True),
    Index("ix_file_references_holder", "holder"),
)

blob_chunks = Table(
    "blob_chunks",
    METADATA,
    Column("sha256", String(64), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("stored_at", _TIME, nullable=False),
)

content_removals = Table(
    "content_removals",
    METADATA,
    # Bytes that a sweep is removing now. Whoever puts them in again meanwhile waits, and looks whether they are still there.
    Column("sha256", String(64), primary_key=True),
    Column("token", String(32), nullable=False),
)

hosts = Table(
    "hosts",
    METADATA,
    Column("host", String(64), primary_key=True),
    # Of this life of the host's process; `origin` names the machine and the state directory.
    Column("instance", String(64), nullable=False),
    Column("origin", Text, nullable=False),
    Column("buckets", Text, nullable=False),
    Column("started_at", _TIME, nullable=False),
    # By the clock of the database: those of the hosts may differ.
    Column("seen_at", _TIME, nullable=False),
    # Since when it is to take nothing more; and of which such order nothing is left to do, as its process says.
    Column("draining_at", _TIME),
    Column("drained_of", _TIME),
    # Calls under way by bucket, as of its last heartbeat.
    Column("calls", Text, nullable=False, server_default="{}"),
)

faults = Table(
    "faults",
    METADATA,
    Column("catalog", String(64), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("file", Text, nullable=False),
    Column("field", Text, nullable=False),
    Column("reason", Text, nullable=False),
)

tasks = Table(
    "tasks",
    METADATA,
    Column("task_id", String(32), primary_key=True),
    Column("type", String(32), nullable=False),
    Column("tool_id", _TOOL_ID, nullable=False),
    Column("status", String(16), nullable=False),
    Column("spec", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("request_key", String(64), nullable=False),
    Column("tool_ids", Text, nullable=False),
    Column("stage", String(16)),
    Column("stages", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("evidence", Text),
    Column("tried", Text),
    # Of the ledger, by the transaction that writes there.
    Column("cost_usd", Float, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("unpriced_turns", Integer, nullable=False),
    Column("created_at", _TIME, nullable=False),
    # By the clock of the database: who waits for a slot and does not ask any more is nobody's turn.
    Column("asked_at", _TIME),
    Column("slot_at", _TIME),
    Column("started_at", _TIME),
    Column("ended_at", _TIME),
    # Where its folder and containers are, once it has begun.
    Column("host", String(64)),
    Index("ix_tasks_created_at", "created_at"),
    Index("ix_tasks_ended_at", "ended_at"),
    Index("ix_tasks_tool_id", "tool_id"),
)

task_notes = Table(
    "task_notes",
    METADATA,
    # Of a task, or of another conversation of an agent.
    Column("task_id", _CONVERSATION_ID, primary_key=True),
    Column("position", Integer, primary_key=True),
    # Says what happened, so that saying it twice notes it once.
    Column("key", String(200), nullable=False),
    Column("at", _TIME, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("text", Text, nullable=False),
    Column("payload", Text),
    Index("ix_task_notes_task_id_key", "task_id", "key", unique=True),
)

messages = Table(
    "messages",
    METADATA,
    Column("conversation_id", _CONVERSATION_ID, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("key", String(200), nullable=False),
    Column("role", String(16), nullable=False),
    # Its JSON, or the file that has it.
    Column("content", Text),
    Column("file_id", String(40)),
    Index("ix_messages_conversation_id_key", "conversation_id", "key", unique=True),
)

tool_outcomes = Table(
    "tool_outcomes",
    METADATA,
    Column("conversation_id", _CONVERSATION_ID, primary_key=True),
    # Which use of a tool it came of.
    Column("key", String(200), primary_key=True),
    Column("content", Text),
    Column("file_id", String(40)),
)

model_turns = Table(
    "model_turns",
    METADATA,
    Column("conversation_id", _CONVERSATION_ID, primary_key=True),
    # Which turn of which run.
    Column("key", String(200), primary_key=True),
    # Of its message.
    Column("position", Integer, nullable=False),
    # As it was asked for, and which one said that it answered.
    Column("provider", Text, nullable=False),
    Column("asked_model", Text, nullable=False),
    Column("model", Text, nullable=False),
    # `name@version`.
    Column("prompt", Text, nullable=False),
    Column("stop_reason", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cache_read_tokens", BigInteger, nullable=False),
    Column("cache_write_tokens", BigInteger, nullable=False),
    # Unknown where the price of the model is.
    Column("cost_usd", Float),
    Column("started_at", _TIME, nullable=False),
    Column("ended_at", _TIME, nullable=False),
)

lost_steps = Table(
    "lost_steps",
    METADATA,
    # `<step> <call id>`.
    Column("step", String(200), primary_key=True),
    Column("times", Integer, nullable=False),
    Column("lost_at", _TIME, nullable=False),
)

external_tables = Table(
    "external_tables",
    METADATA,
    Column("source", String(40), primary_key=True),
    # An `ExternalTable`.
    Column("document", Text, nullable=False),
)

evidence = Table(
    "evidence",
    METADATA,
    Column("tool_id", _TOOL_ID, primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("task_id", String(32), nullable=False),
    Column("document", Text, nullable=False),
)

write_checks = Table(
    "write_checks",
    METADATA,
    # Written by those who look whether the database can be written; a few slots, so that they seldom wait for each other.
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("at", _TIME, nullable=False),
)
