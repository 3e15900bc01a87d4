"""The host of a state directory, and what several hosts share."""

from dataclasses import replace
from pathlib import Path

import pytest

from api.ports import NotReadyError
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable
from workers.settings.kept import ContentSettings
from workers.state.directory import StateDirectory, open_state, owned_state
from workers.state.shared_files import require_shared_files


def _state(folder: Path) -> StateDirectory:
    return replace(open_state(folder), host="host-a")


async def test_files_in_a_folder_are_no_place_for_two_hosts(sqlite_url: str, tmp_path: Path) -> None:
    database = Database(sqlite_url)
    hosts = HostTable(database, 3600)
    await require_shared_files(hosts, ContentSettings(), _state(tmp_path))
    await hosts.claim(HostClaim("host-b", "b", "elsewhere", {}))
    await require_shared_files(hosts, ContentSettings(content_store="database"), _state(tmp_path))
    with pytest.raises(NotReadyError, match="TOOL_AGENT_CONTENT_STORE"):
        await require_shared_files(hosts, ContentSettings(), _state(tmp_path))
    await database.close()


def test_a_host_id_that_was_set_counts_more_than_the_one_that_is_kept(tmp_path: Path) -> None:
    with owned_state(tmp_path / "state", "host-named") as state:
        assert state.host == "host-named"
    with owned_state(tmp_path / "state") as state:
        kept = state.host
    assert kept.startswith("host-")
    (tmp_path / "state/host_id").write_text("")  # a process died while it wrote
    with owned_state(tmp_path / "state") as state:
        assert state.host not in {"", kept}
