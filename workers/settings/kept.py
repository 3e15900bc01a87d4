"""The state directory, the database, files, and how long they are kept."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from workers.settings.part import Part

RetentionHours: TypeAlias = Annotated[float, Field(ge=96)]


class StateSettings(Part):
    """The state directory."""

    state_dir: Path = Path(".state")
    """The state directory: everything that is not in the database."""

    files_root: Path | None = None
    """Folder whose files calls may name by path; unset: `files` in the state directory."""

    @property
    def files_folder(self) -> Path:
        return self.files_root or self.state_dir / "files"


class DatabaseSettings(Part):
    """The database."""

    database_url: str | None = None
    """SQLAlchemy URL, `postgresql+asyncpg://…` for several hosts; unset: SQLite in the state directory."""

    database_pool_size: Annotated[int, Field(ge=1, le=200)] = 10
    """The most connections to the database per process; on SQLite five more, for short queries and transactions."""


class ContentSettings(Part):
    """Files that are kept."""

    content_store: Literal["folder", "database", "s3"] = "folder"
    """Where files are kept: `folder` (of the state directory), `database` or `s3`."""

    s3_bucket: str | None = None
    """Bucket of the content store; its keys are the secrets `S3_ACCESS_KEY_ID` and `S3_SECRET_ACCESS_KEY`."""

    s3_prefix: str = ""
    """Prefix of the names of its objects."""

    s3_endpoint: str | None = None
    """URL of a server that speaks S3; unset: Amazon's."""

    s3_region: str = "us-east-1"
    """Region of the bucket."""


class RetentionSettings(Part):
    """How long things are kept."""

    file_retention_hours: Annotated[float, Field(ge=26)] = 168.0
    """Hours after which an unused file is removed; one that a record or a version names stays."""

    call_retention_hours: RetentionHours = 2_160.0
    """Hours after its end at which the record of a call is deleted, with its result and events; its idempotency key is new again."""

    task_retention_hours: RetentionHours = 2_160.0
    """Hours after its end at which a task or a session of a group is deleted, with its log; tools and their evidence stay."""

    chat_retention_hours: RetentionHours = 2_160.0
    """Hours after its last message at which a conversation is deleted; tasks that it began stay."""
