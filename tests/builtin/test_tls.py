"""A pinned connection checks the certificate for the URL's name, not for the address."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from engine.runtimes.builtin.http_request import Arguments, HttpRequest
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations
from tests.builtin.conftest import Site
from tests.machine import lacking
from toolagent.contracts.calls import ErrorType

OPENSSL = shutil.which("openssl")


async def at_home(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def tool(tls: ssl.SSLContext | None = None) -> HttpRequest:
    return HttpRequest(Destinations(("127.0.0.1",), at_home), max_bytes=1000, tls=tls)


async def failure_of(sender: HttpRequest, url: str) -> CallFailed:
    with pytest.raises(CallFailed) as failure:
        await sender.run(Arguments(url=url))
    return failure.value


@pytest.fixture
async def certificate(tmp_path: Path) -> Path:
    """One file with the key and the self-signed certificate of `tls.test`."""
    if OPENSSL is None:
        lacking("openssl is not installed (Debian: apt-get install openssl)")
    found = tmp_path / "tls.pem"
    made = await asyncio.create_subprocess_exec(
        *(OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tls.test"),
        *("-addext", "subjectAltName=DNS:tls.test", "-keyout", str(found), "-out", str(tmp_path / "certificate.pem")),
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await made.wait() == 0
    found.write_text(found.read_text() + (tmp_path / "certificate.pem").read_text())
    return found


@pytest.fixture
async def secure_site(certificate: Path) -> AsyncIterator[Site]:
    found, context = Site(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    found.answer("/", b"secure")
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=context)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


async def test_the_name_of_the_url_is_the_name_in_the_certificate(secure_site: Site, certificate: Path) -> None:
    trusting = tool(ssl.create_default_context(cafile=str(certificate)))
    assert (await trusting.run(Arguments(url=f"https://tls.test:{secure_site.port}/"))).body == "secure"


async def test_another_name_at_the_same_address_is_not_believed(secure_site: Site, certificate: Path) -> None:
    trusting = tool(ssl.create_default_context(cafile=str(certificate)))
    failure = await failure_of(trusting, f"https://other.test:{secure_site.port}/")
    assert (failure.error_type, failure.details["cause"], secure_site.seen) == (ErrorType.EXECUTION_ERROR, "tls", [])


async def test_a_certificate_nobody_vouches_for_is_not_believed(secure_site: Site) -> None:
    failure = await failure_of(tool(), f"https://tls.test:{secure_site.port}/")
    assert (failure.error_type, failure.details["cause"], secure_site.seen) == (ErrorType.EXECUTION_ERROR, "tls", [])


async def test_a_server_that_speaks_no_tls_is_told_from_one_that_is_not_there() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        failure = await failure_of(tool(), f"https://tls.test:{server.sockets[0].getsockname()[1]}/")
    assert (failure.error_type, failure.details["cause"]) == (ErrorType.EXECUTION_ERROR, "tls")
