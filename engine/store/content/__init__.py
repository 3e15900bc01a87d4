"""Stores for the bytes of files, each under its hash: one module and one line here per kind of store."""

from collections.abc import Callable, Mapping

from engine.store.content.database import DatabaseContent
from engine.store.content.folder import FolderContent
from engine.store.content.parts import ContentParts
from engine.store.content.s3 import S3Content
from engine.store.content.store import ContentStore

__all__ = ["CONTENT_STORES"]

CONTENT_STORES: Mapping[str, Callable[[ContentParts], ContentStore]] = {
    "folder": lambda parts: FolderContent(parts.folder),
    "database": lambda parts: DatabaseContent(parts.database),
    "s3": lambda parts: S3Content(parts.s3()),
}
"""By the value of TOOL_AGENT_CONTENT_STORE."""
