"""Printed addresses, and those of unusable databases."""

import socket
from pathlib import Path

import pytest

from workers.failures import CannotRun
from workers.ports import listen, url_of
from workers.service import running_service
from workers.settings.front import FrontSettings
from workers.settings.kept import DatabaseSettings, StateSettings
from workers.settings.temporal import TemporalSettings
from workers.settings.whole import Settings

ROOT = Path(__file__).parents[2]


def test_an_address_can_be_opened_as_it_is_printed() -> None:
    with listen("127.0.0.1", 0, "PORT") as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.skipif(not socket.has_ipv6, reason="This machine has no IPv6.")
def test_an_ipv6_address_stands_in_brackets() -> None:
    with listen("::1", 0, "PORT") as listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"


@pytest.mark.parametrize("url", ["no url", "postgresql+nodriver://user:sesame@127.0.0.1/x", "sqlite:///plain.db"])
async def test_a_database_that_cannot_be_used_is_named_by_its_setting(tmp_path: Path, url: str) -> None:
    settings = Settings(
        state=StateSettings(state_dir=tmp_path),
        front=FrontSettings(fastapi_port=0),
        database=DatabaseSettings(database_url=url),
        temporal=TemporalSettings(temporal_config=ROOT / "temporal-dev.yaml"),
    )
    service = running_service(settings)
    with pytest.raises(CannotRun, match="TOOL_AGENT_DATABASE_URL"):
        await service.__aenter__()
