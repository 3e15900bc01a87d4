"""The addresses where uv looks for packages, in its order."""

import asyncio
from pathlib import Path

import pytest
import uv

from engine.making.dependencies.index_addresses import IndexAway, addresses_from, addresses_of
from engine.runtimes.environments.indexes import Index
from engine.runtimes.environments.programs import Programs
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from toolagent.contracts.sources import ScriptLanguage
from workers.host.scripts import indexes_of


def test_named_and_extra_indexes_come_before_the_default_one() -> None:
    variables = {
        "UV_DEFAULT_INDEX": "http://d.test/simple/",
        "UV_INDEX_URL": "http://older.test/simple",
        "UV_INDEX": "ours=http://a.test/simple http://b.test/simple",
        "UV_EXTRA_INDEX_URL": "http://c.test/simple file:///srv/wheels",
    }
    assert addresses_of(variables) == ("http://a.test/simple", "http://b.test/simple", "http://c.test/simple", "http://d.test/simple")


def test_the_older_name_of_the_default_index_counts_where_it_is_alone() -> None:
    assert addresses_of({"UV_INDEX_URL": "http://older.test/simple"}) == ("http://older.test/simple",)


async def test_what_the_installer_could_not_say_is_away() -> None:
    async def unknown(language: ScriptLanguage) -> Index:
        await asyncio.sleep(0)
        raise IndexesUnknown("cannot read http://somebody:hunter22@index.test")

    with pytest.raises(IndexAway) as caught:
        await addresses_from(unknown)()
    assert "hunter22" not in str(caught.value)


async def test_uv_itself_is_asked(tmp_path: Path) -> None:
    """uv's settings are in a file, so no variable shows them."""
    settings = tmp_path / "uv.toml"
    settings.write_text('[[index]]\nurl = "http://127.0.0.1:9/simple"\ndefault = true\n', "utf-8")
    programs = Programs.found(Path(uv.find_uv_bin()))
    variables = {"HOME": str(tmp_path), "UV_CONFIG_FILE": str(settings), "UV_OFFLINE": "1", "PATH": "/usr/bin:/bin"}
    assert await addresses_from(indexes_of(programs, variables))() == ("http://127.0.0.1:9/simple",)
