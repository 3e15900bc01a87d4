"""Asks the package indexes of uv whether they have a package, and since when."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from urllib.parse import quote

import httpx

from engine.making.dependencies.index_addresses import Addresses, IndexAway
from engine.making.dependencies.index_pages import ACCEPT, NoPage, Project, read_page
from engine.network.peers import peer_client, read_at_most
from engine.network.tls import machine_tls

_MAX_BYTES = 64 * 1024 * 1024
_ASK_S = 30.0
_PAUSES_S = (0.2, 1.0)
_AT_ONCE = 8
_KEEP_S = 600.0
_KEPT = 2000
_OK = 200
_SERVER_ERROR = 500
_TOO_MANY = 429
_ABSENT = (404, 410)


class _Temporary(Exception):
    """The index may answer soon."""


class SimpleIndex:
    """Close it with `aclose`. Keeps answers for ten minutes, but no failures.

    The first index that has the package decides, as in uv.
    """

    def __init__(
        self,
        addresses: Addresses,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._addresses, self._clock = addresses, clock
        self._client = peer_client(
            httpx.AsyncHTTPTransport(verify=machine_tls(), trust_env=False),
            packed=True,
            max_redirects=5,
            headers={"Accept": ACCEPT},
            timeout=httpx.Timeout(_ASK_S, connect=10.0),
        )
        self._known: dict[str, tuple[float, Project | None]] = {}
        self._one_each: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def project(self, name: str) -> Project | None:
        """A package by its normalised name; None if no index has it, or none of its files can be installed. Raises IndexAway."""
        try:
            async with self._one_each[name], self._places:
                known = self._known.get(name)
                if known is not None and known[0] > self._clock():
                    return known[1]
                project = await self._asked(name)
                while len(self._known) >= _KEPT:
                    del self._known[next(iter(self._known))]
                self._known[name] = self._clock() + _KEEP_S, project
                return project
        finally:
            if not self._one_each[name].locked():
                del self._one_each[name]

    async def _asked(self, name: str) -> Project | None:
        addresses = await self._addresses()
        if not addresses:
            raise IndexAway("uv is configured with no package index that can be asked over HTTP.")
        for address in addresses:
            project = await self._patiently(f"{address}/{quote(name, safe='')}/")
            if project is not None and project.releases:
                return project
        return None

    async def _patiently(self, url: str) -> Project | None:
        for pause_s in (*_PAUSES_S, None):
            try:
                async with asyncio.timeout(_ASK_S):
                    return await self._page(url)
            except (_Temporary, TimeoutError, httpx.HTTPError) as error:
                if pause_s is None:
                    # The error may quote the address.
                    why = str(error) if isinstance(error, _Temporary) else f"it does not answer ({type(error).__name__})"
                    raise IndexAway(f"The package index cannot be asked: {why}.") from None
            await asyncio.sleep(pause_s)
        raise AssertionError("The last attempt returns or raises.")

    async def _page(self, url: str) -> Project | None:
        async with self._client.stream("GET", url) as response:
            status = response.status_code
            if status in _ABSENT:
                return None
            if status == _TOO_MANY or status >= _SERVER_ERROR:
                raise _Temporary(f"it answers with status {status}")
            if status != _OK:
                raise IndexAway(f"The package index cannot be asked: it answers with status {status}.")
            body, is_whole = await read_at_most(response, _MAX_BYTES)
            if not is_whole:
                raise IndexAway(f"The package index cannot be asked: a page of it has more than {_MAX_BYTES} bytes.")
            content_type = response.headers.get("content-type", "")
        try:
            # Some pages are megabytes.
            return await asyncio.to_thread(read_page, content_type, body)
        except NoPage as error:
            raise IndexAway(f"The package index cannot be asked: {error}.") from error
