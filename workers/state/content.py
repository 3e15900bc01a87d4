"""The store of files that the settings name."""

from engine.store.content import CONTENT_STORES
from engine.store.content.parts import ContentParts, UnusableContentStoreError
from engine.store.content.store import ContentStore
from engine.store.database import Database
from workers.failures import CannotRun
from workers.settings.kept import ContentSettings
from workers.state.directory import StateDirectory
from workers.state.secrets import secrets_of


def content_of(database: Database, settings: ContentSettings, state: StateDirectory) -> ContentStore:
    """Raises CannotRun if the store cannot be used, or the secrets are not private."""
    secrets = secrets_of(state)
    # A file of secrets that others may read would look like one without the store's keys.
    secrets.check()
    parts = ContentParts(
        folder=state.content,
        database=database,
        secret=secrets.resolve,
        s3_bucket=settings.s3_bucket,
        s3_prefix=settings.s3_prefix,
        s3_endpoint=settings.s3_endpoint,
        s3_region=settings.s3_region,
    )
    try:
        return CONTENT_STORES[settings.content_store](parts)
    except UnusableContentStoreError as error:
        raise CannotRun(f"Files cannot be kept: {error}.") from error
