"""Faults of the specification of an MCP server, found before the server is contacted."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, urlsplit

from toolagent.contracts.identifiers import OWNED_VARIABLES, SECRET_IN_A_HEADER, SECRET_PATTERN
from toolagent.contracts.mcp_oauth import McpGrant, McpOAuth
from toolagent.contracts.mcp_servers import McpServerSpec, McpTransport
from toolagent.core.calls.masking import masked_command, masked_text
from toolagent.core.loopback import is_confidential
from toolagent.core.schemas import MASK

__all__ = ["SpecFault", "settled_spec"]

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_NAMES_A_SECRET = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]* )?secret:")
_NOT_PLAIN = re.compile(r"[\x00-\x1f\x7f]")
_OWN_HEADERS = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host", "last-event-id",
        "mcp-protocol-version", "mcp-session-id", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_ONLY_STARTED = "It is for a server that is started here, and this one has a `url`."


class SpecFault(ValueError):
    """`field` is the one to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def settled_spec(spec: McpServerSpec) -> McpServerSpec:
    """The specification with its `type`. Raises SpecFault."""
    for field, message in _faults(spec):
        raise SpecFault(field, message)
    if spec.command is not None:
        return spec.model_copy(update={"type": McpTransport.STDIO})
    by_path = McpTransport.SSE if urlsplit(spec.url or "").path.rstrip("/").endswith("/sse") else McpTransport.STREAMABLE_HTTP
    return spec.model_copy(update={"type": spec.type or by_path})


def _faults(spec: McpServerSpec) -> Iterator[tuple[str, str]]:
    if spec.url is None and spec.command is None:
        yield "url", "Give the `url` of the server, or the `command` that starts it."
    elif spec.url is not None and spec.command is not None:
        yield "command", "Give either `url` or `command`, not both."
    elif spec.url is not None:
        yield from _faults_of_url(spec, spec.url)
    else:
        yield from _faults_of_command(spec, spec.command or "")
    for field, given in (("env", spec.env), ("headers", spec.headers)):
        yield from _faults_of_values(field, given)


def _faults_of_url(spec: McpServerSpec, url: str) -> Iterator[tuple[str, str]]:
    for field in ("args", "env", "allow_hosts", "allow_read", "allow_write"):
        if getattr(spec, field):
            yield field, _ONLY_STARTED
    if spec.type is McpTransport.STDIO:
        yield "type", "A server with a `url` is no `stdio` one: leave `type` out, or write `http` or `sse`."
    yield from _faults_of_address(spec, url)
    if spec.oauth is not None:
        yield from _faults_of_oauth(spec, spec.oauth)
    for name in spec.headers:
        if name.lower() in _OWN_HEADERS:
            yield "headers", f"{name} is set by the protocol itself; leave it out."


def _faults_of_oauth(spec: McpServerSpec, oauth: McpOAuth) -> Iterator[tuple[str, str]]:
    if any(name.lower() == "authorization" for name in spec.headers):
        yield "oauth", "Give either `oauth` or the header Authorization, not both."
    if oauth.grant is McpGrant.CLIENT_CREDENTIALS and oauth.client_secret is None:
        yield "oauth", "The grant `client_credentials` needs a `client_secret`."
    issuer = _split(oauth.issuer) if oauth.issuer is not None else None
    if oauth.issuer is not None and (issuer is None or issuer.scheme not in {"http", "https"} or not issuer.hostname):
        yield "oauth", "`issuer` is the http:// or https:// URL of an authorization server."
    secret = oauth.client_secret or ""
    if _PLACEHOLDER.search(secret):
        yield "oauth", "`client_secret`: a placeholder is not replaced here. Write the value, or secret:NAME and set that secret."
    if not all(text.isascii() and text.isprintable() for text in (oauth.client_id, secret)):
        yield "oauth", "`client_id` and `client_secret` hold printable ASCII only."
    if any(not scope.isascii() or not scope.isprintable() or set(scope) & set(' "\\') for scope in oauth.scopes):
        yield "oauth", "`scopes`: one is printable ASCII without spaces, quotes and backslashes (RFC 6749, 3.3)."
    if secret.startswith("secret:") and not re.fullmatch(SECRET_PATTERN, secret):
        yield "oauth", "`client_secret`: the name of a secret has capital letters, digits and `_`: secret:MY_KEY."


def _faults_of_address(spec: McpServerSpec, url: str) -> Iterator[tuple[str, str]]:
    parts = _split(url)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        yield "url", "Give an http:// or https:// URL with a host."
    elif parts.username is not None or parts.password is not None or "@" in parts.netloc:
        yield "url", "It holds a user name or password. Leave that out, and give a key in `headers`."
    elif _NOT_PLAIN.search(url) or parts.fragment:
        yield "url", "It holds a control character, or a part behind `#`, which no server sees."
    elif not is_confidential(parts.scheme, parts.hostname) and _shows_secret(spec, url):
        yield "url", "The key would be sent over http://, where everybody on the way can read it. Give an https:// URL, or no key."


def _faults_of_command(spec: McpServerSpec, command: str) -> Iterator[tuple[str, str]]:
    if spec.oauth is not None:
        yield "oauth", "It is for a server with a `url`."
    if spec.headers:
        yield "headers", "They are for a server with a `url`; give variables in `env`."
    if spec.type not in {None, McpTransport.STDIO}:
        yield "type", "A server with a `command` is a `stdio` one."
    words = (command, *spec.args)
    if any(_NOT_PLAIN.search(word.replace("\n", "").replace("\t", "")) for word in words):
        yield "args", "A word of the command holds a control character."
    if any(masked_text(word) != word for word in words) or any(MASK in shown for shown in masked_command(words)):
        yield "args", "A word of the command looks like a key, which all on this machine could see. Give it in `env`."
    for name in spec.env:
        if name.upper() in OWNED_VARIABLES or name.upper().startswith(("TOOL_AGENT_", "LD_")):
            yield "env", f"{name}: the sandbox sets it itself; leave it out."


def _faults_of_values(field: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if _PLACEHOLDER.search(value):
            yield (
                field,
                f"{name}: {_PLACEHOLDER.findall(value)[0]} is not replaced here. Write the value, or secret:NAME and set that secret.",
            )
        if field == "headers" and not (value.isascii() and value.isprintable()):
            yield field, f"{name}: a header holds printable ASCII only."
        if "\0" in value:
            yield field, f"{name}: it holds the character NUL."
        form = SECRET_IN_A_HEADER if field == "headers" else SECRET_PATTERN
        if _NAMES_A_SECRET.match(value) and not re.fullmatch(form, value) and (field == "headers" or value.startswith("secret:")):
            yield field, f"{name}: the name of a secret has capital letters, digits and `_`: secret:MY_KEY."


def _shows_secret(spec: McpServerSpec, url: str) -> bool:
    return "secret:" in url or spec.oauth is not None or any(_NAMES_A_SECRET.match(value) for value in spec.headers.values())


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        is_possible = parts.port is None or parts.port > 0
    except ValueError:
        return None
    return parts if is_possible else None
