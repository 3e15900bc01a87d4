"""Which addresses are allowed for a server that a document of others names; checked at each connection."""

from collections.abc import Sequence
from ipaddress import ip_address

import httpx

from engine.network.addresses import Address, Resolve, bounded, carried, is_ours, is_public, resolve
from engine.runtimes.failures import NotSent
from toolagent.contracts.calls import ErrorType
from toolagent_service.calls.hosts import host_matches

_LOOKUPS = 8
_MAX_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


class PublicServers:
    """Public addresses that are not this machine's own; those of `private_hosts` may be anywhere.

    One check is not enough: the owner of the name may change its address later (DNS rebinding).
    """

    def __init__(self, private_hosts: Sequence[str] = (), resolve: Resolve = resolve) -> None:
        self._private_hosts, self._resolve = tuple(private_hosts), bounded(resolve, at_once=_LOOKUPS)

    async def of(self, url: httpx.URL) -> list[Address]:
        """Raises NotSent."""
        host, port = url.raw_host.decode("ascii").strip("[]"), url.port or _PORTS.get(url.scheme, 0)
        if url.port is not None and not 0 < url.port <= _MAX_PORT:
            raise NotSent(ErrorType.SECURITY_ERROR, f"There is no port {url.port}.", {"host": host})
        try:
            found = [ip_address(address) for address in await self._resolve(host, port)]
        except (OSError, ValueError, OverflowError) as error:
            raise NotSent(ErrorType.UNAVAILABLE, f"The host {host!r} could not be resolved: {error}.", {"host": host}) from error
        if any(host_matches(pattern, host, port) for pattern in self._private_hosts):
            return found
        for address in found:
            if not is_public(address) or is_ours(carried(address) or address):
                message = (
                    f"{host!r} is at {address}, which is no public address. If that is meant, name {host}:{port} among the private_hosts."
                )
                raise NotSent(ErrorType.SECURITY_ERROR, message, {"host": host, "address": str(address)})
        return found
