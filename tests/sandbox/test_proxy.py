"""What the proxy allows and refuses, byte by byte."""

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.network.addresses import Address, is_ours
from engine.network.proxy import ProxyLimits
from engine.network.proxy_greeting import Greeting, greeted
from engine.network.proxy_rules import Asked, Rules
from tests.sandbox.networked import Resolver
from tests.sandbox.upstream import proxied, say, site

HERE = ("127.0.0.1",)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "p.sock"


async def test_a_tunnel_carries_both_ways_and_each_side_may_end_first(path: Path) -> None:
    async with site() as there, proxied(path, Rules([f"a.test:{there.port}"], ["*:" + str(there.port)], Resolver(a_test=[HERE]))) as proxy:
        answer = await say(path, f"CONNECT a.test:{there.port} HTTP/1.1\r\nHost: a.test\r\n\r\nhello".encode(), end=True)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\nok")
        assert there.seen == [b"hello"]
        assert proxy.asks.kept == [Asked("a.test", there.port, True, f"allowed by a.test:{there.port}")]


async def test_a_request_is_sent_on_with_the_host_it_names_and_without_what_is_for_the_proxy(path: Path) -> None:
    async with site() as there, proxied(path, Rules(["*:" + str(there.port)], ["*:" + str(there.port)], Resolver(a_test=[HERE]))):
        request = (
            f"POST http://A.test:{there.port}/x?y=1 HTTP/1.1\r\nHost: a.test:{there.port}\r\nProxy-Authorization: secret\r\n"
            "Connection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nhi"
        )
        answer = await say(path, request.encode())
        assert (status_of(answer), answer[-2:]) == (200, b"ok")
        sent = there.seen[0].lower()
        assert sent.startswith(f"post /x?y=1 http/1.1\r\nhost: a.test:{there.port}\r\n".encode())
        assert b"x-end: 2" in sent
        assert b"secret" not in sent
        assert b"x-hop" not in sent


async def test_an_answer_without_a_length_arrives_whole(path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300_000
    async with site(answer) as there, proxied(path, Rules(["*:" + str(there.port)], ["*:" + str(there.port)], Resolver(a_test=[HERE]))):
        got = await say(path, f"GET http://a.test:{there.port}/ HTTP/1.0\r\n\r\n".encode())
        assert got.count(b"x") == 300_000


@pytest.mark.parametrize(
    "target",
    ["other.test:443", "a.test:22", "a.test.evil.test:443", "xa.test:443", "127.0.0.1:7233", "a.test:7233", "[::1]:443", "localhost:80"],
)
async def test_a_host_or_port_that_is_not_named_is_refused(path: Path, target: str) -> None:
    async with proxied(path, Rules(["a.test"])) as proxy:
        answer = await say(path, f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status_of(answer) == 403
        assert b"Proxy-Status: tool-agent; error=http_request_denied" in answer
        assert b"securityContext.networkAccess.allowHosts" in answer
        assert [(asked.allowed, f"{asked.host}:{asked.port}") for asked in proxy.asks.kept] == [
            (False, target.replace("[", "").replace("]", ""))
        ]


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["192.168.0.1"],
        ["172.16.0.1"],
        ["169.254.169.254"],
        ["168.63.129.16"],
        ["100.64.0.1"],
        ["0.0.0.0"],  # noqa: S104 - nothing is bound to it
        ["::1"],
        ["fd00::1"],
        ["fe80::1"],
        ["::ffff:127.0.0.1"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::7f00:1"],
        ["1.1.1.1", "10.0.0.1"],
    ],
)
@pytest.mark.parametrize("request_line", ["CONNECT a.test:443 HTTP/1.1", "GET http://a.test/ HTTP/1.1"])
async def test_an_allowed_name_at_an_address_that_is_not_public_is_refused(path: Path, addresses: Sequence[str], request_line: str) -> None:
    async with proxied(path, Rules(["a.test"], resolve=Resolver(a_test=[addresses]))) as proxy:
        answer = await say(path, f"{request_line}\r\nHost: a.test\r\n\r\n".encode())
        assert status_of(answer) == 403
        assert b"Proxy-Status: tool-agent; error=destination_ip_prohibited" in answer
        assert b"private_hosts" in answer
        assert [asked.allowed for asked in proxy.asks.kept] == [False]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "127.1", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "localhost", "127.0.0.1."]
)
async def test_an_address_of_ours_is_refused_however_it_is_written_and_whatever_is_allowed(path: Path, host: str) -> None:
    async with site() as there, proxied(path, Rules([f"*:{there.port}"])):
        assert status_of(await say(path, f"CONNECT {host}:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())) == 403
        assert there.seen == []


def test_our_own_addresses_are_told_from_others() -> None:
    assert all(map(is_ours, map(ip_address, ("127.0.0.1", "127.9.9.9"))))
    assert not any(map(is_ours, map(ip_address, ("1.1.1.1", "2606:4700::1111"))))


@pytest.mark.parametrize("address", ["1.1.1.1", "::ffff:1.1.1.1"])
async def test_a_public_address_that_is_this_machines_own_is_refused(path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ours(address: Address) -> bool:
        return str(address) == "1.1.1.1"

    monkeypatch.setattr("engine.network.addresses.is_ours", ours)
    async with proxied(path, Rules(["a.test"], resolve=Resolver(a_test=[[address]]))):
        assert b"destination_ip_prohibited" in await say(path, b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n")


async def test_the_connection_goes_to_the_address_that_was_judged_whatever_the_name_says_next(path: Path) -> None:
    names = Resolver(a_test=[["127.0.0.1"], ["127.0.0.2"]])
    async with site() as there, proxied(path, Rules([f"a.test:{there.port}"], [f"a.test:{there.port}"], names)):
        answer = await say(path, f"GET http://a.test:{there.port}/ HTTP/1.1\r\nHost: a.test:{there.port}\r\n\r\n".encode())
        assert (status_of(answer), names.asked) == (200, ["a.test"])


async def test_a_name_that_turns_private_between_two_requests_is_refused_the_second_time(path: Path) -> None:
    names = Resolver(a_test=[["192.0.2.1"], ["127.0.0.1"]])  # neither is public; each is judged anew
    async with proxied(path, Rules(["a.test"], resolve=names)) as proxy:
        for _ in range(2):
            assert status_of(await say(path, b"CONNECT a.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")) == 403
        assert [asked.reason.split(" ")[0] for asked in proxy.asks.kept] == ["192.0.2.1", "127.0.0.1"]


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http://a.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 400),
        ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: other.test\r\n\r\n", 400),
        ("GET http://user:word@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http://a.test:99999/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http://a.test\\@other.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http://a.test#@other.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("CONNECT a.test:443/x HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx", 400),
        ("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", 400),
        ("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1, 2\r\n\r\nxy", 400),
        ("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
        ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX : y\r\n\r\n", 400),
        ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: y\r\n folded: z\x00\r\n\r\n", 400),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        ("GET http://a.test/" + "x" * 200_000 + " HTTP/1.1\r\nHost: a.test\r\n\r\n", 431),
        ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n" + "X: y\r\n" * 40_000, 431),
    ],
)
async def test_what_could_be_understood_in_two_ways_is_refused_before_anything_is_asked_for(
    path: Path, request_text: str, status: int
) -> None:
    names = Resolver(a_test=[HERE])
    async with proxied(path, Rules(["*"], ["*"], names)) as proxy:
        assert status_of(await say(path, request_text.encode("latin-1"), end=True)) == status
        assert (proxy.asks.kept, names.asked) == ([], [])


async def test_a_second_request_behind_the_first_reaches_nobody(path: Path) -> None:
    async with site() as there, proxied(path, Rules([f"a.test:{there.port}"], ["*:" + str(there.port)], Resolver(a_test=[HERE]))) as proxy:
        one = f"GET http://a.test:{there.port}/one HTTP/1.1\r\nHost: a.test:{there.port}\r\n\r\n"
        answer = await say(path, (one + one.replace("/one", "/two")).encode())
        assert (answer.count(b"HTTP/1.1"), len(there.seen), len(proxy.asks.kept)) == (1, 1, 1)
        assert b"/two" not in there.seen[0]


def greeting(name: str) -> bytes:
    """The first bytes of Python's TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("name", ["a.test", "A.test", "1.1.1.1"])
async def test_a_greeting_for_the_host_of_the_tunnel_or_without_a_name_goes_through(path: Path, name: str) -> None:
    async with site() as there, proxied(path, Rules([f"a.test:{there.port}"], ["*:" + str(there.port)], Resolver(a_test=[HERE]))):
        hello = greeting(name)
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(f"CONNECT a.test:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + hello[:40])
        await reader.readuntil(b"\r\n\r\n")
        assert there.seen == []
        writer.write(hello[40:])
        assert (await reader.read(-1))[-2:] == b"ok"
        assert there.seen == [hello]
        writer.close()


async def test_a_greeting_for_another_host_is_not_sent_on_and_is_noted(path: Path) -> None:
    async with site() as there, proxied(path, Rules([f"a.test:{there.port}"], ["*:" + str(there.port)], Resolver(a_test=[HERE]))) as proxy:
        await say(path, f"CONNECT a.test:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + greeting("b.test"))
        assert [(asked.host, asked.allowed) for asked in proxy.asks.kept] == [("a.test", True), ("b.test", False)]
        assert [seen for seen in there.seen if seen] == []


async def test_a_greeting_that_hides_its_name_behind_more_than_we_look_at_is_not_sent_on(path: Path) -> None:
    async with site() as there, proxied(path, Rules([f"a.test:{there.port}"], ["*:" + str(there.port)], Resolver(a_test=[HERE]))):
        endless = b"\x16\x03\x01\x40\x00\x01\x0f\xff\xff" + bytes(16_380) + (b"\x16\x03\x01\x40\x00" + bytes(16_384)) * 5
        await say(path, f"CONNECT a.test:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + endless)
        assert [seen for seen in there.seen if seen] == []


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=200), st.integers(0, 600), st.integers(0, 255))
def test_a_greeting_that_is_none_is_no_error(tail: bytes, cut: int, byte: int) -> None:
    whole = greeting("a.test")
    for data in (tail, b"\x16\x03\x01" + tail, whole[:cut] + bytes([byte]) + whole[cut + 1 :] + tail, whole[:cut]):
        assert isinstance(greeted(data), str | Greeting)


async def test_who_never_finishes_the_request_is_cut_off(path: Path) -> None:
    async with proxied(path, Rules(["*"]), ProxyLimits(header_s=0.2)):
        assert status_of(await say(path, b"GET http://a.test/ HTTP/1.1\r\nX-Slow: ")) == 408


async def test_a_tunnel_on_which_nothing_moves_is_closed(path: Path) -> None:
    async with site(speak=_until_closed) as there:
        rules = Rules([f"a.test:{there.port}"], [f"a.test:{there.port}"], Resolver(a_test=[HERE]))
        async with proxied(path, rules, ProxyLimits(idle_s=0.3)):
            answer = await say(path, f"CONNECT a.test:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_run_has_so_many_connections_and_no_more_and_gets_them_back(path: Path) -> None:
    async with proxied(path, Rules(["a.test"]), ProxyLimits(connections=2)):
        held = [await asyncio.open_unix_connection(str(path)) for _ in range(2)]
        assert status_of(await say(path, b"")) == 503
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(60):
            while status_of(await say(path, b"CONNECT b.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")) == 503:  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.01)


async def test_all_runs_together_have_so_many_connections(path: Path) -> None:
    async with proxied(path, Rules(["a.test"]), places=1):
        _, writer = await asyncio.open_unix_connection(str(path))
        assert status_of(await say(path, b"")) == 503
        writer.close()


async def test_the_end_of_the_run_ends_every_connection(path: Path) -> None:
    async with site(speak=_until_closed) as there:
        rules = Rules([f"a.test:{there.port}"], [f"a.test:{there.port}"], Resolver(a_test=[HERE]))
        async with proxied(path, rules) as proxy:
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(f"CONNECT a.test:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            await proxy.aclose()
            async with asyncio.timeout(60):
                assert await reader.read() == b""
            writer.close()


async def test_a_host_that_is_not_there_is_said_and_still_counts_as_asked_for(path: Path) -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    async with proxied(path, Rules(["*"], resolve=unknown)) as proxy:
        answer = await say(path, b"CONNECT nowhere.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (status_of(answer), len(proxy.asks.kept)) == (502, 1)
        assert b"error=dns_error" in answer


async def test_what_is_kept_of_a_run_is_bounded_and_the_audit_hears_all(path: Path) -> None:
    heard: list[Asked] = []
    async with proxied(path, Rules(["a.test"])) as proxy:
        proxy.asks.tell = heard.append
        proxy.asks.kept.extend([Asked("x", 1, False, "")] * 999)
        for _ in range(3):
            await say(path, b"CONNECT b.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (len(proxy.asks.kept), proxy.asks.left_out, len(heard)) == (1000, 2, 3)


async def _until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(-1)
