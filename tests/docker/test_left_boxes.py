"""A container that could not be removed after its run is removed once the engine answers again."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from engine.runtimes.docker.serving.sandbox_level import ContainerLevel
from engine.runtimes.docker_engine.engine import Api, Engine, EngineUnavailable
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.process.box import Box, LevelUnavailable
from engine.runtimes.sandbox.identities import Identities
from tests.docker.conftest import containers_of
from toolagent.contracts.sandbox import SandboxPolicy

T = TypeVar("T")


class Leaving(Engine):
    """An engine that can be made unavailable."""

    is_away = False

    async def ask(self, what: Callable[[Api], T], timeout_s: float | None = None) -> T:
        if self.is_away:
            raise EngineUnavailable("gone fishing")
        return await super().ask(what, timeout_s)


def is_free(users: Identities) -> bool:
    try:
        users.take(Path("/nonexistent/another")).release()
    except LevelUnavailable:
        return False
    return True


async def test_what_could_not_be_removed_is_removed_later(engine: Engine, settings: DockerSettings, tmp_path: Path) -> None:
    leaving = Leaving()
    users = Identities(range(60_706, 60_707), tmp_path / "users") if os.geteuid() == 0 else None
    level = ContainerLevel(tmp_path / "etc", leaving, settings.owner, users)
    run = await level.prepare(["/usr/bin/true"], Box("left", Path("/"), SandboxPolicy().defaults))
    leaving.is_away = True
    with pytest.raises(OSError, match="could not be removed"):
        await run.end()
    assert len(await containers_of(engine, settings)) == 1
    leaving.is_away = False
    async with asyncio.timeout(60):
        while await containers_of(engine, settings):  # noqa: ASYNC110 - it happens elsewhere
            await asyncio.sleep(0.05)
        while users is not None and not is_free(users):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
    leaving.close()
