"""The IM client of a process: off without a server, its secret, one process at a time."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client

from engine.store.database import Database
from tests.system.waiting import wait_until
from toolagent.testing.servers.im_server import ImServer
from workers.failures import CannotRun
from workers.im import running_im
from workers.settings.im import ImSettings
from workers.settings.whole import Settings
from workers.state.directory import open_state


async def test_without_a_server_there_is_none(temporal: Client, database: Database, tmp_path: Path) -> None:
    async with running_im(Settings(), open_state(tmp_path / "state"), temporal, database) as im:
        assert im is None
    assert not (tmp_path / "state/im").exists()


async def test_the_secret_is_shown_and_a_second_process_is_refused(
    temporal: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_AGENT_SECRET_IM_TOKEN", "opens")
    with ImServer(token="opens") as server:  # noqa: S106 - of this test
        settings, state = Settings(im=ImSettings(im_url=f"{server.im_url}?more=1")), open_state(tmp_path / "state")
        async with running_im(settings, state, temporal, database) as im:
            assert im is not None
            assert im.address == f"{server.im_url} as tool_agent"
            await asyncio.to_thread(wait_until, lambda: im.client.connected_since, "it is connected")
            with pytest.raises(CannotRun, match="TOOL_AGENT_IM_URL"):
                async with running_im(settings, state, temporal, database):
                    pass
        async with running_im(settings, state, temporal, database) as again:
            assert again is not None
