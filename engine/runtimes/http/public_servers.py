"""The judge of servers that a third party's document names."""

from collections.abc import Sequence

import httpx

from engine.network.addresses import Address, Resolve, resolve
from engine.network.public_addresses import ForbiddenAddress, PublicAddresses
from engine.runtimes.failures import NotSent
from engine.runtimes.http.destination import LOOKUPS, has_port, host_of, port_of
from toolagent.contracts.calls import ErrorType


class PublicServers:
    """Allows public addresses that are not this machine's own; hosts that match `private_hosts` may be anywhere.

    Called for each connection: the owner of the name may change its address later (DNS rebinding).
    """

    def __init__(self, private_hosts: Sequence[str] = (), resolve: Resolve = resolve) -> None:
        self._allowed = PublicAddresses(private_hosts, resolve, at_once=LOOKUPS)

    async def of(self, url: httpx.URL) -> list[Address]:
        """Raises NotSent."""
        host, port = host_of(url), port_of(url)
        if not has_port(url):
            raise NotSent(ErrorType.SECURITY_ERROR, f"There is no port {url.port}.", {"host": host})
        try:
            return await self._allowed.of(host, port)
        except ForbiddenAddress as forbidden:
            address = str(forbidden.address)
            message = f"{host!r} is at {address}, which is no public address. If that is meant, name {host}:{port} among the private_hosts."
            raise NotSent(ErrorType.SECURITY_ERROR, message, {"host": host, "address": address}) from forbidden
        except (OSError, ValueError, OverflowError) as error:
            raise NotSent(ErrorType.UNAVAILABLE, f"The host {host!r} could not be resolved: {error}.", {"host": host}) from error
