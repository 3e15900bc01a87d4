"""A key that stands in a catalog file goes to the secrets, and nowhere else."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import select

from engine.registry.export import CatalogExport
from engine.store.database import Database
from engine.store.tables import METADATA
from tests.registry.importing import importer_of, write_catalog
from workers.secrets import SecretSource

KEY = "sk-live-5f0c8e0a7d3b4c4f"
TOOLS: JsonValue = [{"tool_id": "ns:weather", "name": "W", "apiKey": KEY + "-2"}]


def remote(**fields: JsonValue) -> JsonValue:
    return {"type": "remote", "remote_url": "https://api.example.com", **fields}


async def stored_in(database: Database) -> bytes:
    """Everything the database holds, and for SQLite what its files do."""
    async with database.read() as connection:
        rows = [(await connection.execute(select(table))).all() for table in METADATA.sorted_tables]
    files = [path.read_bytes() for path in _files_of(database.url)]
    return b"".join([repr(rows).encode(), *files])


def _files_of(url: str) -> list[Path]:
    name = url.rpartition(":///")[2]
    return [*Path(name).parent.glob("test.db*")] if url.startswith("sqlite") else []


async def imported(database: Database, folder: Path, *sources: JsonValue) -> str:
    """What was said about it."""
    documents: dict[str, dict[str, JsonValue]] = {
        "registry.json": {"tools": TOOLS},
        "sources.json": {"sources": {"ns:weather": [*sources]}},
    }
    write_catalog(folder / "data", documents)
    faults = await importer_of(database, folder).run(folder / "data", ())
    return json.dumps([fault.model_dump() for fault in faults])


async def test_a_literal_key_is_moved_and_is_nowhere_else(database: Database, tmp_path: Path) -> None:
    odd = remote(remote_api_key=KEY, headers={"X-Token": KEY + "-3"})
    said = await imported(database, tmp_path, odd)
    exported = json.dumps(await CatalogExport(database).documents())
    stored = await stored_in(database)
    assert KEY not in said + exported
    assert KEY.encode() not in stored
    assert "secret:NS_WEATHER_REMOTE_API_KEY" in said
    assert "secret:NS_WEATHER_REMOTE_API_KEY" in exported
    file = tmp_path / "secrets"
    assert file.stat().st_mode & 0o777 == 0o600
    secrets = SecretSource({}, file)
    names = ("NS_WEATHER_REMOTE_API_KEY", "NS_WEATHER_APIKEY", "NS_WEATHER_HEADERS_X_TOKEN")
    assert [secrets.resolve(name) for name in names] == [KEY, f"{KEY}-2", f"{KEY}-3"]


async def test_the_same_key_is_moved_once_and_another_one_gets_another_name(database: Database, tmp_path: Path) -> None:
    await imported(database, tmp_path, remote(remote_api_key=KEY))
    before = (tmp_path / "secrets").read_text("utf-8")
    await imported(database, tmp_path, remote(remote_api_key=KEY))
    assert (tmp_path / "secrets").read_text("utf-8") == before
    assert "secret:NS_WEATHER_REMOTE_API_KEY_2" in await imported(database, tmp_path, remote(remote_api_key="another"))
    assert SecretSource({}, tmp_path / "secrets").resolve("NS_WEATHER_REMOTE_API_KEY") == KEY


@pytest.mark.parametrize(
    "source",
    [
        remote(remote_api_key=f"{KEY}\nsecond line"),
        {"type": "remote", "remote_url": f"https://me:{KEY}@api.example.com"},
        {"type": "mcp", "tool_name": "x", "url": f"https://{KEY}@api.example.com"},
        remote(mirror=f"https://me:{KEY}@elsewhere"),
    ],
)
async def test_what_cannot_be_moved_is_refused_and_not_repeated(database: Database, tmp_path: Path, source: JsonValue) -> None:
    said = await imported(database, tmp_path, source)
    assert "$.sources.ns:weather[0]" in said
    assert KEY not in said
    found = await stored_in(database)
    assert KEY.encode() not in found.replace(f"{KEY}-2".encode(), b"")


async def test_a_file_of_secrets_that_others_may_read_is_not_written(database: Database, tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("OLD=1\n", "utf-8")
    (tmp_path / "secrets").chmod(0o644)
    said = await imported(database, tmp_path, remote(remote_api_key=KEY))
    assert "chmod 600" in said
    assert (tmp_path / "secrets").read_text("utf-8") == "OLD=1\n"
