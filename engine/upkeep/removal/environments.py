"""Environments that no tool needs any more."""

from contextlib import AbstractAsyncContextManager

import structlog

from engine.runtimes.environments.environments import ScriptEnvironments
from engine.upkeep.rounds import repeated

_EVERY_S = 3600.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def tidied(environments: ScriptEnvironments) -> AbstractAsyncContextManager[None]:
    """They are removed now and once an hour, until the block ends."""

    async def tidy() -> None:
        for name in await environments.tidy():
            _log.info("removed_environment", name=name)

    return repeated(tidy, _EVERY_S, "tidy environments")
