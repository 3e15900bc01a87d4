"""An importer on a database and a folder of the test, with a vault that can be read."""

import json
from pathlib import Path

from pydantic import JsonValue

from engine.registry.archives import ProjectArchives
from engine.registry.catalog import CatalogImport
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from workers.state.secrets import SecretSource

__all__ = ["files_of", "importer_of", "write_catalog"]


def files_of(database: Database, folder: Path) -> FileStore:
    return FileStore(database, FolderContent(folder / "content"), folder / "spool", 50_000_000)


def importer_of(database: Database, folder: Path, catalog: str = "host-1") -> CatalogImport:
    """The secrets are in `folder / "secrets"`."""
    return CatalogImport(database, ProjectArchives(files_of(database, folder)), SecretSource({}, folder / "secrets"), catalog)


def write_catalog(folder: Path, documents: dict[str, dict[str, JsonValue]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
