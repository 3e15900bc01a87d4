"""How a box gets a way to the hosts it may reach; without one it has no network at all."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from engine.network.proxy_rules import Asks
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.process.box import Box
from engine.runtimes.sandbox.egress import Egress, Opening

__all__ = ["Network", "Opened", "no_network", "refusals_of", "through"]


@dataclass(frozen=True, slots=True)
class Opened:
    """The box and its command with the way out in them. `refusals` are those so far, as `host:port: reason`."""

    box: Box
    argv: Sequence[str]
    refusals: Callable[[], tuple[str, ...]] = lambda: ()


Network: TypeAlias = Callable[[Box, Sequence[str], Sequence[str]], AbstractAsyncContextManager[Opened]]
"""Of a box, its command, and the patterns of hosts it may reach; it is open while the block lasts."""


@asynccontextmanager
async def no_network(box: Box, argv: Sequence[str], _hosts: Sequence[str]) -> AsyncGenerator[Opened]:
    yield Opened(box, argv)


def refusals_of(asks: Asks) -> tuple[str, ...]:
    """As `host:port: reason`; the last says how many more were asked for than were kept."""
    refused = tuple(f"{one.host}:{one.port}: {one.reason}" for one in asks.kept if not one.allowed)
    return (*refused, f"{asks.left_out} more connections were asked for, and are not listed") if asks.left_out else refused


def through(egress: Egress, *, trusted: bool = False, is_apart: bool = True, observed: bool = False) -> Network:
    """By the allow-listing proxy. `trusted`: the operator named the hosts, so they may be at addresses that are not public.

    `is_apart`: the sandbox has a loopback of its own. `observed`: of those that may reach no host it is known, too, which they ask for.
    """

    @asynccontextmanager
    async def opened(box: Box, argv: Sequence[str], hosts: Sequence[str]) -> AsyncGenerator[Opened]:
        try:
            opening = egress.open(box.name, Opening(hosts, hosts if trusted else (), is_apart=is_apart, observed=observed))
            way = await opening.__aenter__()
        except OSError as error:
            message = f"The way to the network could not be opened: {error}"
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, message, {"program": "proxy"}) from error
        try:
            environment = {**box.environment, **way.environment}
            reaching = replace(box, mounts=(*box.mounts, *way.mounts), environment=environment, ports=way.ports)
            yield Opened(
                reaching,
                way.argv(argv),
                lambda: refusals_of(way.asks),
            )
        finally:
            await opening.__aexit__(None, None, None)

    return opened
