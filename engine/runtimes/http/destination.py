"""Which addresses a request may go to, and a transport that connects to no other.

Each hop resolves its name once, judges all its addresses before it connects, and connects to a judged address. So a name server that
changes its answer in between (DNS rebinding) gains nothing.
"""

from collections.abc import Collection, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Protocol

import httpx
from pydantic import JsonValue

from engine.network.addresses import Address, Resolve, bounded, carried, is_allowed, is_here, is_no_host, resolve
from engine.runtimes.failures import CallFailed, NotSent
from toolagent.contracts.calls import ErrorType

LOOKUPS = 8
"""How many names one judge resolves at a time."""
_MAX_PORT = 65_535


def host_of(url: httpx.URL) -> str:
    """The host in ASCII, without the brackets of an IPv6 address."""
    return url.raw_host.decode("ascii").strip("[]")


def port_of(url: httpx.URL) -> int:
    return url.port or {"http": 80, "https": 443}.get(url.scheme, 0)


def has_port(url: httpx.URL) -> bool:
    """Whether the URL's port, if it names one, can exist."""
    return url.port is None or 0 < url.port <= _MAX_PORT


class Destinations:
    """Allows public addresses that are not this machine's own, and those that the setting names.

    Raises ValueError for an entry that is no host, address or CIDR.
    """

    def __init__(self, allow: Sequence[str], resolve: Resolve = resolve, setting: str = "TOOL_AGENT_HTTP_REQUEST_ALLOW") -> None:
        self._setting = setting
        self._resolve = bounded(resolve, at_once=LOOKUPS)
        self._networks: list[IPv4Network | IPv6Network] = []
        self._hosts: set[str] = set()
        for entry in allow:
            self._admit(entry.strip())

    def _admit(self, entry: str) -> None:
        try:
            self._networks.append(ip_network(entry, strict=False))
        except ValueError as error:
            if not entry or set(entry) & set("/:@*[] "):
                raise ValueError(f"{self._setting}: {entry!r} is no host name, address or CIDR (such as 10.0.0.0/8).") from error
            self._hosts.add(_canonical(entry))

    async def of(self, url: httpx.URL) -> list[Address]:
        """The addresses of this URL. Raises CallFailed (`security_error`) if any of them must not be reached."""
        if url.scheme not in {"http", "https"} or not url.host:
            raise CallFailed(ErrorType.SECURITY_ERROR, f"A redirect leads to {url.scheme}:, which is neither http nor https.")
        if url.userinfo:
            raise CallFailed(
                ErrorType.SECURITY_ERROR, f"A redirect to {url.host!r} carries a user name or password in its URL; it is not followed."
            )
        if not has_port(url):
            raise CallFailed(ErrorType.SECURITY_ERROR, f"There is no port {url.port}.")
        try:
            found = [ip_address(address) for address in await self._resolve(host_of(url), port_of(url))]
        except (OSError, UnicodeError, OverflowError) as error:
            details: dict[str, JsonValue] = {"cause": "dns", "host": url.host, "no_such_host": is_no_host(error)}
            raise CallFailed(ErrorType.EXECUTION_ERROR, f"The host {url.host!r} could not be resolved: {error}.", details) from error
        for address in found:
            if not self._may_reach(url.host, address):
                raise _refused(url.host, address, self._setting)
        return found

    def _may_reach(self, host: str, address: Address) -> bool:
        if _canonical(host) in self._hosts or is_allowed(address):
            return True
        return any((carried(address) or address) in network or address in network for network in self._networks)


class Judge(Protocol):
    """Returns the addresses that a URL may be fetched from, or raises a RuntimeFailure."""

    async def of(self, url: httpx.URL) -> list[Address]: ...


class BeforeSending:
    """A judge for requests to tools: a refusal is NotSent."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    async def of(self, url: httpx.URL) -> list[Address]:
        """Raises NotSent."""
        try:
            return await self._destinations.of(url)
        except CallFailed as failure:
            raise NotSent(failure.error_type, failure.message, failure.details) from failure


class Elsewhere:
    """A judge that also refuses the ports of this machine on which the service itself listens."""

    def __init__(self, judge: Judge, own_ports: Collection[int]) -> None:
        self._judge, self._own_ports = judge, own_ports

    async def of(self, url: httpx.URL) -> list[Address]:
        """Raises NotSent."""
        found = await self._judge.of(url)
        if port_of(url) in self._own_ports and any(map(is_here, found)):
            raise NotSent(ErrorType.SECURITY_ERROR, f"{url.host}:{port_of(url)} is the service itself.")
        return found


class PinnedTransport(httpx.AsyncBaseTransport):
    """Connects to the addresses that its judge returns, in their order. Host header and TLS name stay those of the URL.

    `inner` must not keep connections alive: its pool would share them between names at the same address.
    """

    def __init__(self, destinations: Judge, inner: httpx.AsyncBaseTransport) -> None:
        self._destinations = destinations
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        failure: httpx.TransportError = httpx.ConnectError("the host has no address", request=request)
        for address in await self._destinations.of(request.url):
            try:
                return await self._inner.handle_async_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


def _pinned(request: httpx.Request, address: Address) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host_of(request.url)},
    )


def _canonical(host: str) -> str:
    return host.rstrip(".").lower()


def _refused(host: str, address: Address, setting: str) -> CallFailed:
    return CallFailed(
        ErrorType.SECURITY_ERROR,
        f"{host!r} is at {address}, which is not a public address, or is this machine's own; "
        f"{setting} can allow the host, the address or its network.",
        {"host": host, "address": str(address), "setting": setting},
    )
