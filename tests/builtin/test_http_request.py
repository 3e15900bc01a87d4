"""http_request against a real server."""

import asyncio
import base64
import gzip
import json
import socket
import threading
import tracemalloc

import pytest
from pydantic import JsonValue
from pydantic_core import to_json

from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.failures import CallFailed
from tests.builtin.conformance import run_alone
from tests.builtin.conftest import Site
from toolagent.contracts.calls import ErrorType

BOUND = 1200
GUARDED = builtin_tools(BuiltinOptions())["http_request"]
ALLOWED = builtin_tools(BuiltinOptions(http_request_allow=("127.0.0.1",), http_request_max_bytes=BOUND))["http_request"]


async def fetch(url: str, **params: JsonValue) -> dict[str, JsonValue]:
    answer = await run_alone(ALLOWED, {"url": url, **params})
    assert isinstance(answer, dict)
    return answer


async def failure_of(url: str, **params: JsonValue) -> CallFailed:
    with pytest.raises(CallFailed) as failure:
        await run_alone(ALLOWED, {"url": url, **params})
    return failure.value


async def test_json_comes_back_parsed(site: Site) -> None:
    site.answer("/", b'{"a": [1, null]}', Content_Type="application/json; charset=utf-8")
    answer = await fetch(site.url("/"))
    assert (answer["status_code"], answer["body"], answer["body_encoding"]) == (200, {"a": [1, None]}, "json")
    assert (answer["truncated"], answer["url"]) == (False, site.url("/"))


@pytest.mark.parametrize(
    ("kind", "content", "body", "encoding"),
    [
        ("text/plain; charset=gbk", "早上好".encode("gbk"), "早上好", "text"),
        ("text/html", "é".encode(), "é", "text"),
        ("application/json", b"{not json", "{not json", "text"),
        ("application/json", b"NaN", "NaN", "text"),
        ("application/json", b"[" * 900, "[" * 900, "text"),
        ("image/png", b"\x89PNG\0", "iVBORwA=", "base64"),
        ("text/plain; charset=punycode", b"abc", "YWJj", "base64"),
        ("text/plain", b"", "", "text"),
    ],
)
async def test_a_body_comes_back_as_what_it_is(site: Site, kind: str, content: bytes, body: str, encoding: str) -> None:
    site.answer("/", content, Content_Type=kind)
    answer = await fetch(site.url("/"))
    assert (answer["body"], answer["body_encoding"]) == (body, encoding)


@pytest.mark.parametrize("status", [404, 418, 500, 503])
async def test_an_error_status_of_the_target_is_a_result(site: Site, status: int) -> None:
    site.answer("/", b"no", status=status)
    assert (await fetch(site.url("/")))["status_code"] == status


async def test_method_headers_and_body_are_sent(site: Site) -> None:
    site.answer("/items")
    await fetch(site.url("/items?q=1"), method="POST", headers={"X-Key": "k"}, body={"n": 1})
    head, _, body = site.seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /items?q=1 HTTP/1.1\r\n")
    assert b"\r\nX-Key: k\r\n" in head + b"\r\n"
    assert b"\r\nContent-Type: application/json" in head
    assert json.loads(body) == {"n": 1}


async def test_a_long_body_is_cut_and_said_to_be(site: Site) -> None:
    text = "é" * 400 + "早" * 400
    site.answer("/", text.encode())
    answer = await fetch(site.url("/"))
    body = answer["body"]
    assert isinstance(body, str)
    assert text.startswith(body)
    assert answer["truncated"] is True
    assert BOUND - 3 < len(to_json(answer)) <= BOUND  # a character of three bytes more would be too much


@pytest.mark.parametrize(
    ("kind", "content", "encoding"),
    [
        ("text/plain", b"0123456789" * 300_000, "text"),
        ("text/plain", b"\x01" * 700_000, "text"),
        ("text/plain", b"\x01" * 200_000 + b"a" * 600_000, "text"),
        ("text/plain; charset=gbk", "早".encode("gbk") * 500_000, "text"),
        ("text/plain", b"\0" * 900_000, "base64"),
        ("image/png", b"\x89PNG" * 250_000, "base64"),
        ("application/json", b"[" + b"1e15," * 180_000 + b"1]", "text"),
        ("application/json", b'"' + b"\\u0001" * 175_000 + b'"', "text"),
    ],
    ids=["plain", "escapes", "escapes first", "gbk", "zeros", "binary", "numbers that grow", "escapes in json"],
)
async def test_a_result_with_all_its_json_stays_within_the_bound_and_close_to_it(
    site: Site, kind: str, content: bytes, encoding: str
) -> None:
    site.answer("/", content, Content_Type=kind)
    bound = 1024 * 1024
    tool = builtin_tools(BuiltinOptions(http_request_allow=("127.0.0.1",)))["http_request"]
    answer = await run_alone(tool, {"url": site.url("/")})
    assert isinstance(answer, dict)
    assert (answer["body_encoding"], answer["truncated"]) == (encoding, True)
    assert 0.8 * bound < len(to_json(answer)) <= bound
    if encoding == "base64":
        assert content.startswith(base64.b64decode(str(answer["body"]), validate=True))


async def test_a_large_body_is_cut_in_one_walk_and_keeps_nobody_waiting(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    threads: set[int] = set()

    def watched(text: str) -> bytes:
        encoded.append(len(text))
        threads.add(threading.get_ident())
        return to_json(text)

    monkeypatch.setattr("engine.runtimes.builtin.response_body.to_json", watched)
    bound = 1024 * 1024
    site.answer("/", b"0" * (2 * bound))
    tool = builtin_tools(BuiltinOptions(http_request_allow=("127.0.0.1",), http_request_max_bytes=bound))["http_request"]
    answer = await run_alone(tool, {"url": site.url("/")})
    assert isinstance(answer, dict)
    assert answer["truncated"] is True
    assert sum(encoded) < 3 * bound
    assert threading.get_ident() not in threads


async def test_headers_that_alone_are_too_much_are_left_out(site: Site) -> None:
    site.answer("/", b"the body", X_Long="x" * BOUND)
    answer = await fetch(site.url("/"))
    assert (answer["body"], answer["headers"], answer["truncated"]) == ("the body", {}, True)


async def test_a_small_body_that_unpacks_to_a_large_one_is_cut(site: Site) -> None:
    site.answer("/", gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip")
    tracemalloc.start()
    try:
        answer = await fetch(site.url("/"))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (set(str(answer["body"])), answer["truncated"]) == ({"0"}, True)
    assert len(to_json(answer)) == BOUND
    assert peak_bytes < 10_000_000


async def test_a_packed_body_is_unpacked(site: Site) -> None:
    site.answer("/", gzip.compress(b"[1]"), Content_Encoding="gzip", Content_Type="application/json")
    assert (await fetch(site.url("/")))["body"] == [1]


async def test_redirects_are_followed_to_the_end(site: Site) -> None:
    site.answer("/a", status=302, Location="/b")
    site.answer("/b", status=307, Location=site.url("/c"))
    site.answer("/c", b"there")
    answer = await fetch(site.url("/a"))
    assert (answer["body"], answer["url"]) == ("there", site.url("/c"))


async def test_redirects_without_end_are_given_up(site: Site) -> None:
    site.answer("/", status=302, Location="/")
    failure = await failure_of(site.url("/"))
    assert (failure.error_type, failure.details["cause"], len(site.seen)) == (ErrorType.EXECUTION_ERROR, "redirects", 6)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0"])  # noqa: S104
async def test_a_private_target_is_refused_before_anything_is_connected(site: Site, host: str) -> None:
    site.answer("/", b"secret")
    with pytest.raises(CallFailed) as failure:
        await run_alone(GUARDED, {"url": site.url("/", host=host)})
    assert (failure.value.error_type, site.connections) == (ErrorType.SECURITY_ERROR, 0)
    assert "TOOL_AGENT_HTTP_REQUEST_ALLOW" in failure.value.message


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://127.0.0.2:{port}/secret",
        "//127.0.0.2:{port}/secret",
        "http://[::ffff:127.0.0.2]:{port}/secret",
        "http://user:word@127.0.0.1:{port}/secret",
        "file:///etc/passwd",
    ],
)
async def test_a_redirect_to_a_private_target_is_refused_before_anything_is_connected(site: Site, target: str) -> None:
    site.answer("/", status=302, Location=target.format(port=site.port))
    site.answer("/secret", b"secret")
    failure = await failure_of(site.url("/"))
    assert (failure.error_type, site.connections) == (ErrorType.SECURITY_ERROR, 1)


@pytest.mark.parametrize(
    "params",
    [
        {"url": "http://user:word@127.0.0.1/"},
        {"url": "http:///path"},
        {"url": "http://a:99999/"},
        {"url": "ftp://a/"},
        {"url": "http://a/", "headers": {"Host": "b"}},
        {"url": "http://a/", "headers": {"content-length": "1"}},
        {"url": "http://a/", "headers": {"Transfer-Encoding": "chunked"}},
        {"url": "http://a/", "headers": {"X": "a\r\nHost: b"}},
        {"url": "http://a/", "headers": {"X Y": "a"}},
        {"url": "http://a/", "body": {"a": 1}},
        {"url": "http://a/", "timeout": 0},
        {"url": "http://a/", "timeout": 301},
        {"url": "http://a/", "method": "TRACE"},
    ],
)
async def test_what_cannot_be_sent_is_refused(params: dict[str, JsonValue]) -> None:
    with pytest.raises(CallFailed) as failure:
        await run_alone(ALLOWED, params)
    assert failure.value.error_type is ErrorType.VALIDATION_ERROR


async def test_a_port_nobody_listens_on_is_an_execution_error_that_says_so() -> None:
    with socket.socket() as taken:  # bound and not listening: refused for sure
        taken.bind(("127.0.0.1", 0))
        failure = await failure_of(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert (failure.error_type, failure.details["cause"], failure.outcome) == (ErrorType.EXECUTION_ERROR, "refused", "failed")


async def test_a_name_that_does_not_exist_is_an_execution_error_that_says_so() -> None:
    failure = await failure_of("http://no-such-host.invalid/")
    assert (failure.error_type, failure.details["cause"]) == (ErrorType.EXECUTION_ERROR, "dns")


@pytest.mark.parametrize("answer", [b"", b"not http\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"])
async def test_a_broken_answer_leaves_the_outcome_unknown(site: Site, answer: bytes) -> None:
    site.answers["/"] = answer
    failure = await failure_of(site.url("/"))
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")


async def test_a_server_that_never_answers_is_a_timeout(site: Site) -> None:
    async with asyncio.timeout(20):
        failure = await failure_of(site.url("/never"), timeout=1)
    assert (failure.error_type, failure.outcome, site.connections) == (ErrorType.TIMEOUT, "unknown", 1)
