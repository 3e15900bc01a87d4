"""Sends an HTTP request and returns the response."""

import asyncio
import re
import ssl
from typing import Annotated, Literal

import httpx
from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_core import to_json

from engine.network.peers import peer_client, read_at_most
from engine.network.tls import usual_tls
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.response_body import BodyEncoding, ReadBody, as_json, as_text, shortened
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolOutput, TypedTool, schema_of
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations, PinnedTransport
from toolagent.client.bounded_answers import AS_SENT
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest

_MAX_PORT = 65_535
_MAX_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_LARGE_BYTES = 64 * 1024
_HOP_BY_HOP = ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade")
_OURS = frozenset(("host", "content-length", "proxy-connection", *_HOP_BY_HOP))
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


class Arguments(ToolArguments):
    url: Annotated[str, Field(pattern=r"^https?://", max_length=8000)]
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH"] = "GET"
    headers: dict[str, str] = Field(
        default={}, description="Request headers; Host, Content-Length and hop-by-hop headers are set by the tool."
    )
    body: dict[str, JsonValue] = Field(default_factory=dict, description="Sent as JSON with POST, PUT and PATCH.")
    timeout: Annotated[float, Field(ge=1, le=300, description="Seconds, for all redirects together.")] = 30

    @field_validator("url")
    @classmethod
    def _is_plain_url(cls, value: str) -> str:
        try:
            url = httpx.URL(value)
        except httpx.InvalidURL as error:
            raise ValueError(f"not a URL: {error}") from error
        if not url.host:
            raise ValueError("the URL has no host")
        if url.port is not None and not 0 < url.port <= _MAX_PORT:
            raise ValueError(f"there is no port {url.port}")
        if url.userinfo:
            raise ValueError("a user name or password does not belong in the URL: send an Authorization header")
        return value

    @field_validator("headers")
    @classmethod
    def _are_the_callers_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if name.lower() in _OURS:
                raise ValueError(f"the header {name!r} is set by the tool: leave it out")
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
                raise ValueError(f"the header {name!r} has characters that HTTP does not allow in its name or value")
        return value

    @model_validator(mode="after")
    def _body_has_a_method(self) -> "Arguments":
        if self.body and self.method in {"GET", "DELETE"}:
            raise ValueError(f"a body is sent with POST, PUT and PATCH, not with {self.method}")
        return self


class Result(ToolOutput):
    status_code: int
    headers: dict[str, str]
    body: JsonValue
    body_encoding: Annotated[BodyEncoding, Field(description="What `body` is: parsed JSON, a text, or bytes in base64.")]
    truncated: Annotated[
        bool,
        Field(description="Whether the body was longer than what is returned; headers that alone are too much are left out."),
    ]
    url: Annotated[str, Field(description="Where the response came from, after redirects.")]


_MANIFEST = ToolManifest(
    tool_id="http_request",
    name="HTTP request",
    description="Sends an HTTP request and returns status, headers and body. An HTTP error status is a result, not a failure. "
    "发送 HTTP 请求(GET、POST 等),调用接口,返回状态、响应头和正文。",
    category="http",
    tags=("network", "api", "rest", "call", "request", "请求", "接口", "调用"),
    input_schema=schema_of(Arguments),
    output_schema=schema_of(Result),
    permission_class=PermissionClass.EXTERNAL,
    side_effect_scope=SideEffectScope.NETWORK,
    examples=(
        ToolExample(description="Fetch a page", input={"url": "https://example.com/"}),
        ToolExample(description="Post JSON", input={"url": "https://example.com/items", "method": "POST", "body": {"name": "a"}}),
    ),
    timeout_s=310,
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    sender = HttpRequest(Destinations(options.http_request_allow), options.http_request_max_bytes)
    return TypedTool(_MANIFEST, Arguments, lambda arguments, _context: sender.run(arguments))


class HttpRequest:
    """Results have at most `max_bytes` bytes of JSON. By default it trusts the certificates of httpx's bundle and of this machine."""

    def __init__(self, destinations: Destinations, max_bytes: int, tls: ssl.SSLContext | None = None) -> None:
        self._destinations = destinations
        self._max_bytes = max_bytes
        self._tls = tls or usual_tls()

    async def run(self, arguments: Arguments) -> Result:
        """Raises CallFailed: `security_error` for an address that must not be reached, `timeout`, or `execution_error`."""
        limit = asyncio.timeout(arguments.timeout)
        try:
            async with limit:
                return await self._send(arguments)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise CallFailed(
                ErrorType.TIMEOUT, f"No complete answer within {arguments.timeout:g} s.", {"timeout_s": arguments.timeout}, "unknown"
            ) from error
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise _failure_of(error) from error

    async def _send(self, arguments: Arguments) -> Result:
        has_body = arguments.method in {"POST", "PUT", "PATCH"} and "body" in arguments.model_fields_set
        async with (
            self._client() as client,
            client.stream(
                arguments.method,
                arguments.url,
                headers=arguments.headers,
                json=arguments.body if has_body else None,
            ) as response,
        ):
            read = await read_at_most(response, self._max_bytes)
            # In a thread if it is large: tens of megabytes take seconds, and other calls must not wait.
            is_large = len(read[0]) > _LARGE_BYTES
            return await asyncio.to_thread(self._result, response, read) if is_large else self._result(response, read)

    def _result(self, response: httpx.Response, read: ReadBody) -> Result:
        body, encoding = as_json(response, read)
        whole = Result(
            status_code=response.status_code,
            headers=dict(response.extensions.get(AS_SENT, response.headers)),
            body=body,
            body_encoding=encoding,
            truncated=not read[1],
            url=str(response.url),
        )
        return whole if len(to_json(whole)) <= self._max_bytes else self._cut(whole, response, read[0])

    def _cut(self, whole: Result, response: httpx.Response, content: bytes) -> Result:
        """The result with as much of the body as fits, as text or base64, because a cut JSON value is not JSON."""
        body, encoding = as_text(response, (content, False))
        bare = whole.model_copy(update={"body": "", "body_encoding": encoding, "truncated": True})
        if len(to_json(bare)) > self._max_bytes:
            bare = bare.model_copy(update={"headers": {}})
        return bare.model_copy(update={"body": shortened(body, encoding, self._max_bytes - len(to_json(bare)))})

    def _client(self) -> httpx.AsyncClient:
        one_each = httpx.Limits(max_keepalive_connections=0)
        return peer_client(
            PinnedTransport(self._destinations, httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=one_each)),
            headers={"User-Agent": "tool-agent", "Connection": "close"},
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            packed=True,
            keeps_unknown=True,
            max_redirects=_MAX_REDIRECTS,
        )


def _failure_of(error: httpx.RequestError | httpx.InvalidURL) -> CallFailed:
    match error:
        case httpx.ConnectTimeout():
            return CallFailed(ErrorType.TIMEOUT, f"No connection within {_CONNECT_SECONDS:g} s.", {"cause": "connect"})
        case httpx.ConnectError():
            cause, words = _connect_cause(error)
            return CallFailed(ErrorType.EXECUTION_ERROR, f"The connection could not be made: {words}.", {"cause": cause})
        case httpx.TooManyRedirects():
            cause, message = "redirects", f"More than {_MAX_REDIRECTS} redirects."
        case httpx.DecodingError():
            cause, message = "encoding", f"The body is not taken: {error}."
        case _:
            cause = type(error).__name__
            message = f"The exchange broke off: {str(error) or cause}."
    return CallFailed(ErrorType.EXECUTION_ERROR, message, {"cause": cause}, "unknown")


def _connect_cause(error: httpx.ConnectError) -> tuple[str, str]:
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ssl.SSLError):
            return "tls", f"TLS failed, {found}"
        if isinstance(found, ConnectionRefusedError):
            return "refused", "it was refused; does anything listen on that port?"
        found = found.__cause__ or found.__context__
    return "unreachable", str(error) or "the host cannot be reached"
