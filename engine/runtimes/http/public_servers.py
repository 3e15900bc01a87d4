"""The judge of servers that a third party's document names."""

from collections.abc import Sequence
from ipaddress import ip_address

import httpx

from engine.network.addresses import Address, Resolve, bounded, is_allowed, resolve
from engine.runtimes.failures import NotSent
from engine.runtimes.http.destination import LOOKUPS, has_port, host_of, port_of
from toolagent.contracts.calls import ErrorType
from toolagent_service.calls.hosts import host_matches


class PublicServers:
    """Allows public addresses that are not this machine's own; hosts that match `private_hosts` may be anywhere.

    Called for each connection: the owner of the name may change its address later (DNS rebinding).
    """

    def __init__(self, private_hosts: Sequence[str] = (), resolve: Resolve = resolve) -> None:
        self._private_hosts, self._resolve = tuple(private_hosts), bounded(resolve, at_once=LOOKUPS)

    async def of(self, url: httpx.URL) -> list[Address]:
        """Raises NotSent."""
        host, port = host_of(url), port_of(url)
        if not has_port(url):
            raise NotSent(ErrorType.SECURITY_ERROR, f"There is no port {url.port}.", {"host": host})
        try:
            found = [ip_address(address) for address in await self._resolve(host, port)]
        except (OSError, ValueError, OverflowError) as error:
            raise NotSent(ErrorType.UNAVAILABLE, f"The host {host!r} could not be resolved: {error}.", {"host": host}) from error
        if any(host_matches(pattern, host, port) for pattern in self._private_hosts):
            return found
        for address in found:
            if not is_allowed(address):
                message = (
                    f"{host!r} is at {address}, which is no public address. If that is meant, name {host}:{port} among the private_hosts."
                )
                raise NotSent(ErrorType.SECURITY_ERROR, message, {"host": host, "address": str(address)})
        return found
