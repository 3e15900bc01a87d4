"""Resolves names, and judges addresses: public or not, this machine's own or not."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Finds the addresses of a host and port, best first. Raises OSError, or UnicodeError if it cannot be a host name."""

_THREADS = ThreadPoolExecutor(32, "resolve")
"""A pool for look-ups alone: a silent name server blocks a thread for half a minute, and nothing else must wait for that."""

_NO_HOST = (socket.EAI_NONAME, socket.EAI_NODATA)

_NAT64 = IPv6Network("64:ff9b::/96")
_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # Azure's host service: metadata, settings, credentials
            "192.0.0.0/24",  # protocol assignments, among them the metadata service of Oracle's older cloud
            "192.88.99.0/24",  # deprecated 6to4 relays
            "3fff::/20",  # documentation; this Python does not know it yet
        ),
    )
)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolves by the operating system, which also reads `127.1` and `2130706433` as addresses."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, _found, host, port)


def bounded(resolve: Resolve, *, at_once: int = 4, within_s: float = 10.0) -> Resolve:
    """Limits look-ups of untrusted names: `at_once` at a time, abandoned ones included.

    Raises TimeoutError (an OSError) if there is no answer within `within_s` seconds.
    """
    places = asyncio.Semaphore(at_once)

    def ended(looking: asyncio.Future[Sequence[str]]) -> None:
        places.release()
        if not looking.cancelled():
            looking.exception()  # the waiter may be gone

    async def one(host: str, port: int) -> Sequence[str]:
        try:
            async with asyncio.timeout(within_s):
                await places.acquire()
                looking = asyncio.ensure_future(resolve(host, port))
                looking.add_done_callback(ended)
                return await asyncio.shield(looking)
        except TimeoutError:
            raise TimeoutError(f"no name server answered within {within_s:g} s") from None

    return one


def is_no_host(error: Exception) -> bool:
    """Whether a look-up failed because there is no such host, not because a name server did not answer."""
    return not isinstance(error, OSError) or (isinstance(error, socket.gaierror) and error.errno in _NO_HOST)


def _found(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Whether the address belongs to the public internet; by the IPv4 address that it carries, if any."""
    inner = carried(address)
    if inner is not None:
        return is_public(inner)
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_loopback
        or address.is_link_local
        or any(address in network for network in _NOT_PUBLIC)
        or (isinstance(address, IPv6Address) and address.is_site_local)
    )


def is_ours(address: Address) -> bool:
    """Whether the address is this machine's own. Even a public one is reached locally, past every firewall."""
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as one:
        try:
            one.bind((str(address), 0))
        except OSError:
            return False
    return True


def is_allowed(address: Address) -> bool:
    """Whether untrusted requests may go there: public and not this machine's own; by the IPv4 address that it carries, if any."""
    return is_public(address) and not is_ours(carried(address) or address)


def is_here(address: Address) -> bool:
    """Whether a connection to the address ends at this machine; by the IPv4 address that it carries, if any."""
    inner = carried(address) or address
    return inner.is_loopback or is_ours(inner)


def carried(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address carries (NAT64, IPv4-mapped, 6to4)."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour
