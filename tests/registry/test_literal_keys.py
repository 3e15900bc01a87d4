"""A key in a catalog file is moved to the secrets, and stored nowhere else."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import select

from engine.registry.export import CatalogExport
from engine.store.database import Database
from engine.store.tables import METADATA
from tests.registry.importing import importer_of, write_catalog

KEY = "sk-live-5f0c8e0a7d3b4c4f"
TOOLS: JsonValue = [{"tool_id": "ns:weather", "name": "W", "apiKey": KEY + "-2"}]


def secrets_of(folder: Path) -> dict[str, str]:
    lines = (folder / "secrets").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def remote(**fields: JsonValue) -> JsonValue:
    return {"type": "remote", "remote_url": "https://api.example.com", **fields}


async def stored_in(database: Database) -> bytes:
    """Everything that the database holds; for SQLite also the content of its files."""
    async with database.read() as connection:
        rows = [(await connection.execute(select(table))).all() for table in METADATA.sorted_tables]
    files = [path.read_bytes() for path in _files_of(database.url)]
    return b"".join([repr(rows).encode(), *files])


def _files_of(url: str) -> list[Path]:
    name = url.rpartition(":///")[2]
    return [*Path(name).parent.glob("test.db*")] if url.startswith("sqlite") else []


async def imported(database: Database, folder: Path, *sources: JsonValue) -> str:
    """The faults of the import."""
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
    file = tmp_path / "secrets"
    assert file.stat().st_mode & 0o777 == 0o600
    kept = secrets_of(tmp_path)
    beginnings = ("NS_WEATHER_APIKEY", "NS_WEATHER_HEADERS_X_TOKEN", "NS_WEATHER_REMOTE_API_KEY")
    assert [name.rpartition("_")[0] for name in sorted(kept)] == [*beginnings]
    assert [kept[name] for name in sorted(kept)] == [f"{KEY}-2", f"{KEY}-3", KEY]
    for name in kept:
        assert f"secret:{name}" in said
        assert f"secret:{name}" in exported


async def test_the_same_key_is_moved_once_and_another_one_gets_another_name(database: Database, tmp_path: Path) -> None:
    await imported(database, tmp_path, remote(remote_api_key=KEY))
    before = secrets_of(tmp_path)
    await imported(database, tmp_path, remote(remote_api_key=KEY))
    assert secrets_of(tmp_path) == before
    await imported(database, tmp_path, remote(remote_api_key="another"))
    after = secrets_of(tmp_path)
    assert {name: after[name] for name in before} == before
    assert [value for name, value in after.items() if name not in before] == ["another"]


async def test_a_key_has_the_same_name_on_every_host_whatever_each_has_kept_before(database: Database, tmp_path: Path) -> None:
    first, second = tmp_path / "host-1", tmp_path / "host-2"
    await imported(database, first, remote(remote_api_key="old"))
    for folder in (first, second):
        await imported(database, folder, remote(remote_api_key=KEY))
    name = next(name for name, value in secrets_of(second).items() if value == KEY)
    assert secrets_of(first)[name] == KEY
    stored = await stored_in(database)
    assert name.encode() in stored


async def test_a_secret_that_somebody_has_set_is_not_written_over(database: Database, tmp_path: Path) -> None:
    await imported(database, tmp_path, remote(remote_api_key=KEY))
    file = tmp_path / "secrets"
    changed = file.read_text("utf-8").replace(f"={KEY}\n", "=set by hand\n")
    file.write_text(changed, "utf-8")
    await imported(database, tmp_path, remote(remote_api_key=KEY))
    assert file.read_text("utf-8") == changed


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        (remote(api_keys=[KEY, "second"]), [KEY, "second"]),
        (remote(auth={"token": [[KEY], "secret:KEPT", ""]}), [KEY]),
        (remote(apiKeys={"one": KEY, "two": ["second"]}), [KEY, "second"]),
        (remote(remote_path=f"/v1?units=m&api_key={KEY}%2F&lang=de"), [f"{KEY}/"]),
        (remote(docs=f"see https://api.example.com/a?access_token={KEY}#top or ?apikey=second."), [KEY, "second."]),
        (remote(remote_path="/v1?api_key=secret:KEPT", hint="https://h/?api_key={key}&token=<token>"), []),
        (remote(stop_tokens=["</s>"], max_tokens=5, secrets=["SOME_NAME"], token={"type": "bearer"}), []),
    ],
)
async def test_keys_in_lists_objects_and_queries_are_moved(
    database: Database, tmp_path: Path, source: JsonValue, keys: list[JsonValue]
) -> None:
    said = await imported(database, tmp_path, source)
    kept = {value: name for name, value in secrets_of(tmp_path).items() if name.rpartition("_")[0] != "NS_WEATHER_APIKEY"}
    assert sorted(kept) == sorted(map(str, keys))
    assert "is not used" not in said
    exported = json.dumps(await CatalogExport(database).documents())
    assert KEY not in exported.replace(f"{KEY}-2", "")
    assert all(f"secret:{name}" in exported for name in kept.values())
    if not keys:
        assert json.dumps(source)[1:-1] in exported


@pytest.mark.parametrize("text", ["git clone ssh://git@host/a.git", "git+ssh://git@host:22/a", "http://host/ and me@example.com"])
async def test_a_user_name_that_is_no_key_may_stand_in_a_url(database: Database, tmp_path: Path, text: str) -> None:
    said = await imported(database, tmp_path, remote(note=text))
    assert "is not used" not in said
    assert text in json.dumps(await CatalogExport(database).documents())


@pytest.mark.parametrize(
    "source",
    [
        remote(remote_api_key=f"{KEY}\nsecond line"),
        {"type": "remote", "remote_url": f"https://me:{KEY}@api.example.com"},
        {"type": "mcp", "tool_name": "x", "url": f"https://{KEY}@api.example.com"},
        remote(mirror=f"https://me:{KEY}@elsewhere"),
        remote(mirror=f"postgresql://me:{KEY}@elsewhere/x"),
        remote(mirror=f"ssh://git:{KEY}@elsewhere/x"),
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
