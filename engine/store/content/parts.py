"""The settings of stores, wired in `workers/`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.store.database import Database

_KEY, _SECRET = "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"


class UnusableContentStoreError(ValueError):
    """The settings name no usable store. The message names the setting and the remedy."""


@dataclass(frozen=True, slots=True)
class S3Place:
    """A bucket and its keys. Without an endpoint: Amazon's."""

    bucket: str
    access_key_id: str
    secret_access_key: str
    prefix: str = ""
    endpoint: str | None = None
    region: str = "us-east-1"

    def __repr__(self) -> str:
        """Without the keys, which must not appear in logs."""
        return f"S3Place({self.bucket!r}, prefix={self.prefix!r}, endpoint={self.endpoint!r})"


@dataclass(frozen=True, slots=True)
class ContentParts:
    """`secret` returns the secret of a name, or None."""

    folder: Path
    database: Database
    secret: Callable[[str], str | None]
    s3_bucket: str | None = None
    s3_prefix: str = ""
    s3_endpoint: str | None = None
    s3_region: str = "us-east-1"

    def s3(self) -> S3Place:
        """Raises UnusableContentStoreError when the bucket or its keys are missing."""
        if self.s3_bucket is None:
            raise UnusableContentStoreError("TOOL_AGENT_CONTENT_STORE is `s3`: set TOOL_AGENT_S3_BUCKET to the bucket to keep files in")
        return S3Place(self.s3_bucket, self._required(_KEY), self._required(_SECRET), self.s3_prefix, self.s3_endpoint, self.s3_region)

    def _required(self, name: str) -> str:
        value = self.secret(name)
        if value is None:
            raise UnusableContentStoreError(
                f"TOOL_AGENT_CONTENT_STORE is `s3` and the secret {name} is missing: set TOOL_AGENT_SECRET_{name}, "
                "or write it to the file `secrets` of the state directory"
            )
        return value
