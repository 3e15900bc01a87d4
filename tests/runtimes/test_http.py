"""Requests to tools over HTTP: their form, and the meaning of the answers."""

import asyncio
import json
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import JsonValue

from engine.network.ports import free_port
from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.http.exchange import HttpExchange, Target
from engine.runtimes.http.runtime import RemoteRuntime
from tests.runtimes.conftest import request_of, silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import HttpMethod, RemoteSource

SECRET = "s3cret-value-of-a-test"  # noqa: S105 - made up


@dataclass
class Service:
    """A remote server that answers with `status` and `body`, or with the request itself."""

    url: str = ""
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    seen: list[dict[str, JsonValue]] = field(default_factory=list[dict[str, JsonValue]])


@pytest.fixture
def service() -> Generator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            url = urlsplit(self.path)
            seen: dict[str, JsonValue] = {
                "method": self.command,
                "path": url.path,
                "query": cast("JsonValue", parse_qs(url.query, keep_blank_values=True)),
                "body": json.loads(self.rfile.read(length)) if length else None,
                "headers": {name.lower(): value for name, value in self.headers.items()},
            }
            service.seen.append(seen)
            body = json.dumps(seen).encode() if service.body is None else service.body
            self.send_response(service.status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in service.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - as the library has them

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        server.shutdown()
        thread.join()


async def send(http: HttpExchange, service: Service, source: RemoteSource | None = None, **params: JsonValue) -> dict[str, JsonValue]:
    source = source or RemoteSource(remote_url=service.url)
    runtime = RemoteRuntime(http, {"KEY": SECRET, "BAD": "schlüssel\n"}.get)
    running = await runtime.start(ToolManifest(tool_id="there", name="There"), source, silent)
    return cast("dict[str, JsonValue]", await runtime.call(running, source, request_of(5.0, **params)))


async def test_secrets_that_the_query_of_a_path_names_are_filled_in_and_masked_in_what_comes_back(
    http: HttpExchange, service: Service
) -> None:
    source = RemoteSource(remote_url=service.url, remote_path="/v1?api_key=secret:KEY&units=m")
    seen = await send(http, service, source)
    assert service.seen[0]["query"] == {"api_key": [SECRET], "units": ["m"]}
    assert SECRET not in json.dumps(seen)


async def test_the_query_of_a_remote_url_comes_behind_the_path_with_its_secrets_filled_in(http: HttpExchange, service: Service) -> None:
    source = RemoteSource(remote_url=f"{service.url}/base?token=secret:KEY&x=1", remote_path="/v1?y=2", http_method="GET")
    seen = await send(http, service, source, q="3")
    assert (seen["path"], service.seen[0]["query"]) == ("/base/v1", {"token": [SECRET], "x": ["1"], "y": ["2"], "q": ["3"]})
    assert SECRET not in json.dumps(seen)


@pytest.mark.parametrize("body", [b'{"n":1e400}', b'[{"deep":[-1e999]}]', b"1" + b"0" * 400 + b".0"])
async def test_a_number_that_is_too_large_is_an_output_error_and_not_null(http: HttpExchange, service: Service, body: bytes) -> None:
    service.body = body
    failure = await failing(http, service)
    assert (failure.error_type, failure.outcome) == (ErrorType.OUTPUT_VALIDATION_ERROR, "failed")


async def test_what_only_looks_like_a_number_that_is_too_large_is_taken(http: HttpExchange, service: Service) -> None:
    service.body = b'{"text":"1e400","n":1e300,"whole":1' + b"0" * 400 + b"}"
    assert await send(http, service) == {"text": "1e400", "n": 1e300, "whole": 10**400}


async def test_a_secret_in_a_query_that_is_not_set_is_named_and_nothing_is_sent(http: HttpExchange, service: Service) -> None:
    refusal = await not_sent(http, service, RemoteSource(remote_url=service.url, remote_path="/v1?token=secret:NONE"))
    assert (refusal.error_type, service.seen) == (ErrorType.DEPENDENCY_ERROR, [])


async def failing(http: HttpExchange, service: Service, source: RemoteSource | None = None, **params: JsonValue) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await send(http, service, source, **params)
    return caught.value


async def not_sent(http: HttpExchange, service: Service, source: RemoteSource, **params: JsonValue) -> NotSent:
    with pytest.raises(NotSent) as caught:
        await send(http, service, source, **params)
    assert service.seen == []
    return caught.value


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_the_path_is_filled_and_the_rest_is_the_body(http: HttpExchange, service: Service, method: HttpMethod) -> None:
    source = RemoteSource(remote_url=service.url + "/v1", endpoint_path="/cities/{city}/{n}", http_method=method)
    seen = await send(http, service, source, city="São/Paulo ?", n=3, deep={"a": [1, None, True]})
    assert (seen["method"], seen["path"], seen["query"]) == (method, "/v1/cities/S%C3%A3o%2FPaulo%20%3F/3", {})
    assert seen["body"] == {"deep": {"a": [1, None, True]}}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_send_the_rest_as_query(http: HttpExchange, service: Service, method: HttpMethod) -> None:
    source = RemoteSource(remote_url=service.url, endpoint_path="/{city}", http_method=method)
    seen = await send(http, service, source, city="x", q="a&b=c", tags=["a", 2, True], deep={"a": 1}, on=False, nothing=None, empty="")
    assert (seen["path"], seen["body"]) == ("/x", None)
    assert seen["query"] == {"q": ["a&b=c"], "tags": ["a", "2", "true"], "deep": ['{"a":1}'], "on": ["false"], "empty": [""]}


async def test_the_query_of_a_path_and_the_parameters_are_both_sent(http: HttpExchange, service: Service) -> None:
    source = RemoteSource(remote_url=service.url, remote_path="/v1?units=m", http_method="GET")
    assert (await send(http, service, source, q="x"))["query"] == {"units": ["m"], "q": ["x"]}


async def test_the_remote_path_goes_before_the_endpoint_path(http: HttpExchange, service: Service) -> None:
    source = RemoteSource(remote_url=service.url, remote_path="other/{x}", endpoint_path="/run")
    assert (await send(http, service, source, x=1.5))["path"] == "/other/1.5"


@pytest.mark.parametrize("value", [None, "", ".", "..", ["x"], {"x": 1}, "\ud800"])
async def test_what_cannot_be_in_a_path_is_refused_before_anything_is_sent(http: HttpExchange, service: Service, value: JsonValue) -> None:
    failure = await not_sent(http, service, RemoteSource(remote_url=service.url, endpoint_path="/{x}"), x=value)
    assert failure.error_type is ErrorType.VALIDATION_ERROR


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
async def test_what_is_no_json_is_refused_before_anything_is_sent(http: HttpExchange, service: Service, value: JsonValue) -> None:
    failure = await not_sent(http, service, RemoteSource(remote_url=service.url), x=value)
    assert failure.error_type is ErrorType.VALIDATION_ERROR


async def test_the_call_id_is_the_idempotency_key_and_no_folder_of_ours_is_told(http: HttpExchange, service: Service) -> None:
    headers = cast("dict[str, str]", (await send(http, service))["headers"])
    assert (headers["idempotency-key"], headers["accept"]) == ("call-12345678", "application/json")
    assert "x-output-dir" not in headers
    assert "authorization" not in headers


async def test_the_key_is_sent_as_the_source_says(http: HttpExchange, service: Service) -> None:
    bearer = RemoteSource(remote_url=service.url, remote_api_key="secret:KEY")
    plain = bearer.model_copy(update={"auth_header": "X-Api-Key", "auth_scheme": ""})
    service.body = b"{}"
    await send(http, service, bearer)
    await send(http, service, plain)
    first, second = [cast("dict[str, str]", seen["headers"]) for seen in service.seen]
    assert (first["authorization"], second["x-api-key"]) == (f"Bearer {SECRET}", SECRET)
    assert "authorization" not in second


@pytest.mark.parametrize("name", ["MISSING", "BAD"])
async def test_a_key_that_cannot_be_used_is_named_and_nothing_is_sent(http: HttpExchange, service: Service, name: str) -> None:
    failure = await not_sent(http, service, RemoteSource(remote_url=service.url, remote_api_key=f"secret:{name}"))
    assert (failure.error_type, failure.details["setting"]) == (ErrorType.DEPENDENCY_ERROR, f"TOOL_AGENT_SECRET_{name}")
    assert "schl" not in f"{failure} {failure.details}"


@pytest.mark.parametrize("status", [200, 401, 422, 500])
async def test_a_key_that_is_sent_back_is_masked(http: HttpExchange, service: Service, status: int) -> None:
    service.status = status
    service.body = json.dumps({"error": {"type": "validation_error", "message": f"no {SECRET}", "details": {"sent": SECRET}}}).encode()
    source = RemoteSource(remote_url=service.url, remote_api_key="secret:KEY")
    if status == 200:
        told = str(await send(http, service, source))
    else:
        failure = await failing(http, service, source)
        told = f"{failure} {failure.details}"
    assert SECRET not in told
    assert "***" in told


@pytest.mark.parametrize(("status", "body"), [(204, b""), (200, b""), (200, b" "), (200, b"null")])
async def test_no_body_is_null(http: HttpExchange, service: Service, status: int, body: bytes) -> None:
    service.status, service.body = status, body
    assert await send(http, service) is None


@pytest.mark.parametrize("body", [b'{"half": ', b"<html>", b"NaN", b'"\xff"', b"[" * 100_000, b"x" * 70_000])
async def test_an_answer_that_is_no_json_or_too_large_is_an_output_error(http: HttpExchange, service: Service, body: bytes) -> None:
    service.body = body
    failure = await failing(http, service)
    assert (failure.error_type, failure.outcome) == (ErrorType.OUTPUT_VALIDATION_ERROR, "failed")
    assert len(str(failure.details)) < 10_000


@pytest.mark.parametrize("status", [302, 400, 404, 500, 503])
async def test_a_failure_carries_status_and_body(http: HttpExchange, service: Service, status: int) -> None:
    service.status, service.body, service.headers = status, b'{"why": "so"}', {"Location": service.url + "/elsewhere"}
    failure = await failing(http, service)
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "failed")
    assert failure.details == {"status_code": status, "body": {"why": "so"}}
    assert len(service.seen) == 1  # no redirect is followed


@pytest.mark.parametrize("status", [502, 504])
async def test_a_gateway_that_gave_up_leaves_the_outcome_unknown(http: HttpExchange, service: Service, status: int) -> None:
    service.status, service.body = status, b"<html>"
    failure = await failing(http, service)
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")
    assert failure.details == {"status_code": status, "body": "<html>", "outcome": "unknown"}


@pytest.mark.parametrize("status", [502, 504])
async def test_a_tool_of_ours_has_no_gateway_before_it(http: HttpExchange, service: Service, status: int) -> None:
    service.status = status
    with pytest.raises(CallFailed) as caught:
        await http.call(Target(service.url, "POST", "/", {}), request_of(5.0))
    assert (caught.value.error_type, caught.value.outcome) == (ErrorType.EXECUTION_ERROR, "failed")


async def test_a_long_failure_is_cut(http: HttpExchange, service: Service) -> None:
    service.status, service.body = 500, b"x" * 1_000_000
    assert len(str((await failing(http, service)).details["body"])) <= 4 * 1024 + 1


async def test_a_tool_may_say_that_the_parameters_are_wrong(http: HttpExchange, service: Service) -> None:
    service.status = 422
    service.body = b'{"error": {"type": "validation_error", "message": "x is odd", "details": {"path": "$.x"}}}'
    failure = await failing(http, service)
    assert (failure.error_type, failure.message, failure.details) == (ErrorType.VALIDATION_ERROR, "x is odd", {"path": "$.x"})


async def test_a_tool_may_say_that_it_cannot_work_here(http: HttpExchange, service: Service) -> None:
    service.status = 503
    service.body = b'{"error": {"type": "unavailable", "message": "x is not installed", "details": {"reason": "x_missing"}}}'
    failure = await failing(http, service)
    assert (failure.error_type, failure.message, failure.details) == (ErrorType.UNAVAILABLE, "x is not installed", {"reason": "x_missing"})


async def test_one_services_cookies_are_not_kept(http: HttpExchange, service: Service) -> None:
    service.headers = {"Set-Cookie": "who=me; Path=/"}
    await send(http, service)
    assert "cookie" not in cast("dict[str, str]", (await send(http, service))["headers"])


async def test_a_proxy_of_our_environment_is_not_used(http: HttpExchange, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    assert await send(http, service)


@pytest.mark.promise("only-connect-errors-are-unsent")
async def test_a_connection_that_is_refused_was_not_sent(http: HttpExchange, service: Service) -> None:
    failure = await not_sent(http, service, RemoteSource(remote_url=f"http://127.0.0.1:{free_port()}"))
    assert failure.error_type is ErrorType.UNAVAILABLE


@pytest.mark.promise("only-connect-errors-are-unsent")
async def test_a_connection_that_breaks_after_sending_has_an_unknown_outcome(http: HttpExchange) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(CallFailed) as caught:
            await http.call(Target(f"http://127.0.0.1:{port}", "GET", "/", {}), request_of(5.0))
    assert (caught.value.error_type, caught.value.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")


async def test_a_trickle_does_not_escape_the_time_out(http: HttpExchange) -> None:
    done = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            while await reader.read(1):
                pass
        finally:
            writer.close()
            done.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(CallFailed) as caught:
            await http.call(Target(f"http://127.0.0.1:{port}", "GET", "/", {}), request_of(0.3))
        await asyncio.wait_for(done.wait(), 60)
    assert (caught.value.error_type, caught.value.outcome) == (ErrorType.TIMEOUT, "unknown")


async def test_a_unix_socket_is_reached_like_a_port(http: HttpExchange, tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42")
        writer.close()

    server = await asyncio.start_unix_server(answer, tmp_path / "tool.sock")
    async with server:
        assert await http.call(Target(f"unix:{tmp_path / 'tool.sock'}", "GET", "/", {}), request_of(5.0)) == 42
    with pytest.raises(NotSent):
        await http.call(Target(f"unix:{tmp_path / 'nobody.sock'}", "GET", "/", {}), request_of(5.0))
