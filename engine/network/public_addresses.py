"""The rule for hosts that others name: every address of a host must be allowed, unless `private_hosts` names the host."""

from collections.abc import Sequence
from ipaddress import ip_address

from engine.network.addresses import Address, Resolve, bounded, is_allowed, resolve
from toolagent_service.calls.hosts import host_matches


class ForbiddenAddress(Exception):
    """The host is at `address`, which is not public, or is this machine's own."""

    def __init__(self, address: Address) -> None:
        super().__init__(str(address))
        self.address = address


class PublicAddresses:
    """Judges hosts. Those that match a pattern of `private_hosts` may be anywhere. `at_once` limits look-ups."""

    def __init__(self, private_hosts: Sequence[str] = (), resolve: Resolve = resolve, *, at_once: int = 4) -> None:
        self._private_hosts, self._resolve = tuple(private_hosts), bounded(resolve, at_once=at_once)

    async def of(self, host: str, port: int) -> list[Address]:
        """All addresses of the host.

        Raises ForbiddenAddress; OSError (a TimeoutError is one), ValueError or OverflowError if the host cannot be resolved.
        """
        found = [ip_address(address) for address in await self._resolve(host, port)]
        if not self.is_private(host, port):
            for address in found:
                if not is_allowed(address):
                    raise ForbiddenAddress(address)
        return found

    def is_private(self, host: str, port: int) -> bool:
        """Whether `private_hosts` names the host."""
        return any(host_matches(pattern, host, port) for pattern in self._private_hosts)
