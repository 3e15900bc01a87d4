"""Hosts that are asked to drain."""

import re
from collections.abc import Awaitable, Callable

from api.errors import Refusal
from api.problems import ProblemKind
from toolagent.contracts.hosts import HostDrain

_HOST = r"[a-z][a-z0-9-]{0,63}"


async def progress_of(host: str, ask: Callable[[str], Awaitable[HostDrain | None]]) -> HostDrain:
    """The drain of a host. Raises Refusal for an unknown host."""
    found = await ask(host) if re.fullmatch(_HOST, host) else None
    if found is None:
        raise Refusal(ProblemKind.HOST_NOT_FOUND, f"There is no host {host[:64]!r}; GET /hosts lists them.")
    return found
