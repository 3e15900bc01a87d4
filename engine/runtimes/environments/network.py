"""Network access of a box to allowed hosts."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from engine.network.proxy_rules import Asks
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.process.box import Box, Network, Opened
from engine.runtimes.sandbox.egress import Egress, Opening


def refusals_of(asks: Asks) -> tuple[str, ...]:
    """The refused connections as `host:port: reason`; the last entry counts those that were not recorded."""
    refused = tuple(f"{one.host}:{one.port}: {one.reason}" for one in asks.kept if not one.allowed)
    return (*refused, f"{asks.left_out} more connections were asked for, and are not listed") if asks.left_out else refused


def through(egress: Egress, *, trusted: bool = False, is_apart: bool = True, observed: bool = False) -> Network:
    """A network through the allow-listing proxy. `trusted`: the operator named the hosts, so their addresses need not be public.

    `is_apart`: the sandbox has its own loopback. `observed`: record requests even if no host is allowed.
    """

    @asynccontextmanager
    async def opened(box: Box, argv: Sequence[str], hosts: Sequence[str]) -> AsyncGenerator[Opened]:
        opening = Opening(hosts, hosts if trusted else (), is_apart=is_apart, observed=observed)
        async with AsyncExitStack() as stack:
            try:
                way = await stack.enter_async_context(egress.open(box.name, opening))
            except OSError as error:
                message = f"The way to the network could not be opened: {error}"
                raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, message, {"program": "proxy"}) from error
            yield Opened(way.around(box), way.argv(argv), lambda: refusals_of(way.asks))

    return opened
