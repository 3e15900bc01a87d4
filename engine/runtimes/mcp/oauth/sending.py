"""Sends the requests of a login: to allowed addresses, over https:// or to this machine, with bounded answers."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import httpx2

from engine.network.tls import machine_tls
from engine.runtimes.failures import NotSent
from engine.runtimes.http.destination import Judge
from toolagent.contracts.calls import ErrorType
from toolagent.core.loopback import is_confidential

Ask = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
"""Sends a request of a login. The answer has its body. Raises NotSent."""

_ANSWER_S = 15.0
_MOST_BYTES = 256 * 1024


class Judged(httpx2.AsyncBaseTransport):
    """Connects to the addresses that a judge returns; without a judge, to any.

    With a judge, `inner` must not keep connections alive: its pool would share them between names at the same address.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, public: Judge | None) -> None:
        self._inner, self._public = inner, public

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises NotSent, httpx2.TransportError."""
        if self._public is None:
            return await self._inner.handle_async_request(request)
        failure: httpx2.TransportError = httpx2.ConnectError("the host has no address")
        for address in await self._public.of(httpx.URL(str(request.url))):
            try:
                return await self._inner.handle_async_request(_pinned(request, str(address)))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


def asking(public: Judge | None) -> Ask:
    """The sender of a login's requests. It follows no redirects: the SDK follows those within an origin."""

    async def ask(request: httpx2.Request) -> httpx2.Response:
        _require_confidential(request.url)
        place = f"{request.url.scheme}://{request.url.netloc.decode('ascii')}{request.url.path}"
        transport = Judged(httpx2.AsyncHTTPTransport(verify=machine_tls(), trust_env=False), public)
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with (
                asyncio.timeout(_ANSWER_S),
                httpx2.AsyncClient(transport=transport, trust_env=False, timeout=_ANSWER_S) as client,
            ):
                return await _read(client, request, place)
        except TimeoutError as error:
            raise _no_answer(place, f"there was none within {_ANSWER_S:g} s") from error
        except httpx2.TransportError as error:
            raise _no_answer(place, str(error) or type(error).__name__) from error

    return ask


async def _read(client: httpx2.AsyncClient, request: httpx2.Request, place: str) -> httpx2.Response:
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise _no_answer(place, "it is packed, which was not asked for")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > _MOST_BYTES:
                raise _no_answer(place, f"it is more than {_MOST_BYTES} bytes")
    finally:
        await response.aclose()
    whole = httpx2.Response(response.status_code, headers=response.headers, content=bytes(body), request=request)
    whole.next_request = response.next_request
    return whole


def _require_confidential(url: httpx2.URL) -> None:
    if not is_confidential(url.scheme, url.host):
        message = f"The login leads to {url.scheme}://{url.host}, where others on the way could read it: only https:// is used."
        raise NotSent(ErrorType.SECURITY_ERROR, message)


def _no_answer(place: str, why: str) -> NotSent:
    return NotSent(ErrorType.UNAVAILABLE, f"The login got no answer of {place}: {why}.")


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii").strip("[]")},
    )
