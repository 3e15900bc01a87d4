"""The embedded Temporal server: what is left when it dies, and its restart."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from workers.failures import CannotRun
from workers.settings.temporal import TemporalSettings
from workers.temporal.dev_server import embedded_temporal, last_words, read_config

ROOT = Path(__file__).parents[2]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - files and logs set no event
            await asyncio.sleep(0.05)


def dying_server(tmp_path: Path) -> TemporalSettings:
    """A server that prints something and exits."""
    program = tmp_path / "temporal"
    program.write_text("#!/bin/sh\necho it broke\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    return TemporalSettings(temporal_binary=program, temporal_port=0, temporal_ui_port=0)


async def test_a_server_that_died_is_started_again_and_its_last_words_stay(tmp_path: Path) -> None:
    folder, owner, config = tmp_path / "temporal-state", Owner.of_this_process(tmp_path), read_config(ROOT / "temporal-dev.yaml")
    with Guardian(owner) as guardian:
        async with embedded_temporal(dying_server(tmp_path), config, folder, guardian, owner):
            log = folder / "server.log"
            await until(lambda: log.read_text("utf-8").count("it broke") >= 2)
    assert str(log) in last_words(folder)
    assert last_words(folder).endswith("it broke")


async def test_a_restart_that_fails_is_said_and_tried_again(tmp_path: Path) -> None:
    folder, owner, config = tmp_path / "temporal-state", Owner.of_this_process(tmp_path), read_config(ROOT / "temporal-dev.yaml")
    with Guardian(owner) as guardian, structlog.testing.capture_logs() as said:
        async with embedded_temporal(dying_server(tmp_path), config, folder, guardian, owner):
            shutil.rmtree(folder)
            await until(lambda: any(line["event"] == "temporal_not_restarted" for line in said))
            folder.mkdir()
            await until(lambda: (folder / "server.log").exists())


async def test_a_log_that_is_too_large_makes_way(tmp_path: Path) -> None:
    folder, owner, config = tmp_path / "temporal-state", Owner.of_this_process(tmp_path), read_config(ROOT / "temporal-dev.yaml")
    folder.mkdir()
    (folder / "server.log").write_bytes(b"x" * 6_000_000)
    with Guardian(owner) as guardian:
        async with embedded_temporal(dying_server(tmp_path), config, folder, guardian, owner):
            assert (folder / "server.log").stat().st_size < 1_000_000
    assert (folder / "server.log.1").stat().st_size == 6_000_000


def test_a_log_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert str(tmp_path / "server.log") in last_words(tmp_path)


async def test_a_damaged_database_of_the_server_is_named_instead_of_being_tried_for_ever(tmp_path: Path) -> None:
    folder, owner, config = tmp_path / "temporal-state", Owner.of_this_process(tmp_path), read_config(ROOT / "temporal-dev.yaml")
    folder.mkdir()
    (folder / "temporal.db").write_bytes(b"no database at all" * 1000)
    with Guardian(owner) as guardian, pytest.raises(CannotRun, match=r"temporal\.db is damaged \(malformed: .*Backup and restore"):
        async with embedded_temporal(dying_server(tmp_path), config, folder, guardian, owner):
            raise AssertionError("it was started")
