"""Messages, outcomes and turns belong to a conversation, which may be another than a task's and have a longer id."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_SHORT, _LONG = sa.String(length=32), sa.String(length=200)
_RENAMED = ("messages", "tool_outcomes", "model_turns")


def upgrade() -> None:
    op.drop_index("ix_messages_task_id_key", "messages")
    for table in _RENAMED:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.alter_column("task_id", new_column_name="conversation_id", existing_type=_SHORT, type_=_LONG, existing_nullable=False)
    with op.batch_alter_table("task_notes", schema=None) as batch_op:
        batch_op.alter_column("task_id", existing_type=_SHORT, type_=_LONG, existing_nullable=False)
    op.create_index("ix_messages_conversation_id_key", "messages", ["conversation_id", "key"], unique=True)
    if op.get_bind().dialect.name == "postgresql":
        for table, column in (*((table, "conversation_id") for table in _RENAMED), ("task_notes", "task_id")):
            op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR(200) COLLATE "C"')


def downgrade() -> None:
    op.drop_index("ix_messages_conversation_id_key", "messages")
    with op.batch_alter_table("task_notes", schema=None) as batch_op:
        batch_op.alter_column("task_id", existing_type=_LONG, type_=_SHORT, existing_nullable=False)
    for table in _RENAMED:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.alter_column("conversation_id", new_column_name="task_id", existing_type=_LONG, type_=_SHORT, existing_nullable=False)
    op.create_index("ix_messages_task_id_key", "messages", ["task_id", "key"], unique=True)
    if op.get_bind().dialect.name == "postgresql":
        for table in (*_RENAMED, "task_notes"):
            op.execute(f'ALTER TABLE {table} ALTER COLUMN task_id TYPE VARCHAR(32) COLLATE "C"')
