"""What is kept: where, and for how long."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workers.settings.part import Part

__all__ = ["ContentSettings", "DatabaseSettings", "RetentionSettings", "StateSettings"]


class StateSettings(Part):
    """The state directory."""

    state_dir: Annotated[Path, Field(description="Where everything is kept that is not in the database.")] = Path(".state")
    files_root: Annotated[
        Path | None, Field(description="Folder whose files calls may name by path; unset: `files` in the state directory.")
    ] = None

    @property
    def files_folder(self) -> Path:
        return self.files_root or self.state_dir / "files"


class DatabaseSettings(Part):
    """The database."""

    database_url: Annotated[
        str | None, Field(description="SQLAlchemy URL, `postgresql+asyncpg://…` for several hosts; unset: SQLite in the state directory.")
    ] = None
    database_pool_size: Annotated[int, Field(ge=1, le=200, description="Connections to the database that are kept, per process.")] = 10


class ContentSettings(Part):
    """Files that are kept."""

    content_store: Annotated[
        Literal["folder", "database", "s3"],
        Field(description="Where files are kept: `folder` (of the state directory), `database` or `s3`."),
    ] = "folder"
    s3_bucket: Annotated[str | None, Field(description="Bucket of the content store; its keys are the secrets below.")] = None
    s3_prefix: Annotated[str, Field(description="Put before the names of its objects.")] = ""
    s3_endpoint: Annotated[str | None, Field(description="URL of a server that speaks S3; unset: Amazon's.")] = None
    s3_region: Annotated[str, Field(description="Its region.")] = "us-east-1"


class RetentionSettings(Part):
    """How long things are kept."""

    file_retention_hours: Annotated[
        float, Field(ge=26, description="After how long an unused file is removed; one that a record or a version names stays.")
    ] = 168.0
    task_retention_hours: Annotated[
        float,
        Field(ge=96, description="After how long a task that has ended is forgotten, with its log; its tools and their evidence stay."),
    ] = 2_160.0
