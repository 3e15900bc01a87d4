"""Front doors without a host: their command line, and their refusals."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from engine.network.ports import free_port
from workers.__main__ import command_of
from workers.commands.doors import doors
from workers.commands.up import api
from workers.failures import CannotRun
from workers.settings.front import FrontSettings
from workers.settings.kept import DatabaseSettings
from workers.settings.temporal import TemporalSettings
from workers.settings.whole import Settings


@pytest.mark.parametrize(
    "arguments",
    [
        ["--processes"],
        ["--processes", "0"],
        ["--processes", "-1"],
        ["--processes", "65"],
        ["--processes", "9" * 5000],
        ["--processes", "2", "3"],
        ["2"],
    ],
)
def test_other_arguments_are_wrong_usage(arguments: list[str]) -> None:
    assert command_of(["api", *arguments]) is None


def test_one_process_needs_no_parent() -> None:
    assert [command_of(["api", *told]) for told in ([], ["--processes", "1"], ["--processes", "01"])] == [api, api, api]
    assert command_of(["api", "--processes", "2"]) not in (None, api)


@pytest.mark.parametrize(
    ("address", "url", "named"),
    [
        (None, "postgresql+asyncpg://x", "TOOL_AGENT_TEMPORAL_ADDRESS"),
        ("127.0.0.1:1", None, "TOOL_AGENT_DATABASE_URL"),
        ("127.0.0.1:1", "sqlite+aiosqlite:////tmp/x.db", "PostgreSQL"),
    ],
)
async def test_what_several_doors_lack_is_said_before_any_is_started(address: str | None, url: str | None, named: str) -> None:
    settings = Settings(temporal=TemporalSettings(temporal_address=address), database=DatabaseSettings(database_url=url))
    with pytest.raises(CannotRun, match=named):
        await doors(settings, processes=2)


async def test_the_command_ends_when_there_can_be_no_other_process_and_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refuse)
    settings = Settings(
        temporal=TemporalSettings(temporal_address="127.0.0.1:1"),
        database=DatabaseSettings(database_url="postgresql+asyncpg://x"),
        front=FrontSettings(fastapi_port=free_port()),
    )
    before = _pipes()
    async with asyncio.timeout(60):
        assert await doors(settings, processes=2) == 1
    assert _pipes() == before


def _pipes() -> set[Path]:
    links = [one.readlink() for one in [*Path("/dev/fd").iterdir()] if one.exists()]
    return {link for link in links if link.name.startswith("pipe:")}
