"""Tables of tools that somebody else keeps."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "external_tables",
        sa.Column("source", sa.String(length=40), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source", name=op.f("pk_external_tables")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute('ALTER TABLE external_tables ALTER COLUMN source TYPE VARCHAR(40) COLLATE "C"')


def downgrade() -> None:
    op.drop_table("external_tables")
