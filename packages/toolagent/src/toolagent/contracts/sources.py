"""Where a tool's implementation lives: a union tagged by `type`."""

import re
from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import GroupId, SecretName, ToolId
from toolagent.contracts.sandbox import EnvironmentName

__all__ = [
    "BackendRuntime",
    "BodyEncoding",
    "BuiltinSource",
    "DockerSource",
    "HttpMethod",
    "HttpSource",
    "LocalSource",
    "Login",
    "McpSource",
    "PackedSource",
    "ParameterStyle",
    "RemoteSource",
    "ScriptLanguage",
    "ScriptSource",
    "Source",
    "ToolSource",
    "Traits",
    "backend_runtime_of",
]

HttpMethod = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

BodyEncoding = Literal["json", "form", "multipart", "octets", "none"]

ParameterStyle = Literal["comma", "space", "pipe", "deep", "fields", "json"]
"""`a,b`, `a b`, `a|b`, `name[key]=value`, `key=value` for each field of the object, or the JSON text of the value."""

_HEADER_NAME = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"

HeaderName = Annotated[str, Field(pattern=_HEADER_NAME)]

_NO_LOGINS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "cookie", "expect", "host", "idempotency-key", "te",
     "trailer", "transfer-encoding", "upgrade", "x-output-dir"}
)  # fmt: skip
"""What a request says by them is ours to say."""

SharedProcess = Annotated[
    GroupId | None,
    Field(
        description="Tools whose sources name the same process, files and rights run in one, usually a group's; unset: in one of its own."
    ),
]

Environment = Annotated[
    dict[EnvironmentName, str], Field(description="Variables that it runs with: texts, or `secret:NAME`, also in the query of an address.")
]

_AUTHORITY = re.compile(r"[^:]*://([^/?#]*)")


class BackendRuntime(StrEnum):
    """A source in one of three words."""

    LOCAL = "local"
    DOCKER = "docker"
    REMOTE = "remote"


class ScriptLanguage(StrEnum):
    PYTHON = "python"
    NODEJS = "nodejs"
    BUN = "bun"


@dataclass(frozen=True, slots=True)
class Traits:
    """What the rest of the service has to know of a source, whatever its type."""

    runtime: BackendRuntime
    on_host: bool = False
    """It is started on one host, and can be called from there only."""
    stays_up: bool = False
    """What is started for it stays between calls, and can be killed."""
    apart: bool = False
    """The sandbox holds all that it does: made-up input reaches nothing that it does not declare."""
    elsewhere: bool = False
    """Somebody else runs it."""
    of_engine: bool = False
    """It is a part of the service: it cannot be removed."""


class Source(Contract):
    """What every type of source is."""

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @property
    def archive(self) -> str | None:
        """Its files in the content store, where it has any."""
        return getattr(self, "content", None)

    def packed_as(self, archive: str) -> Self:
        """The same with these files; unchanged where it has none."""
        return self.model_copy(update={"content": archive}) if "content" in type(self).model_fields else self


class HttpSource(Source):
    """What all sources that are reached over HTTP say of it."""

    endpoint_path: Annotated[str, Field(pattern=r"^/", description="Path of the call; `{name}` is filled from the parameters.")] = "/"
    http_method: HttpMethod = "POST"
    health_path: Annotated[
        str,
        Field(
            pattern=r"^/",
            description="Asked until it answers 200; of the default one, and where a path is not there, any answer below 500 will do.",
        ),
    ] = "/health"
    query_parameters: Annotated[
        tuple[str, ...], Field(description="Parameters that go into the query although the method has a body; GET and DELETE need none.")
    ] = ()
    header_parameters: Annotated[dict[str, HeaderName], Field(description="Parameters that go into a header, with its name.")] = {}
    body_parameter: Annotated[
        str | None, Field(description="The parameter that is the whole body; unset: an object of all that go nowhere else.")
    ] = None
    parameter_styles: Annotated[
        dict[str, ParameterStyle], Field(description="Lists and objects in path, query or header that are not written as usual.")
    ] = {}
    body_encoding: Annotated[
        BodyEncoding, Field(description="How the body is written; `octets`: `body_parameter` names a file, sent as it is.")
    ] = "json"
    body_media_type: Annotated[
        str, Field(pattern=r"^([\w.+*-]+/[\w.+*-]+)?$", description="The media type of octets; empty: `application/octet-stream`.")
    ] = ""
    file_parameters: Annotated[
        tuple[str, ...], Field(description="Parameters of the format `file-path` whose files are sent, in a body that is not JSON.")
    ] = ()


class Login(Contract):
    """What a server that we run wants to be shown with each call: the value of one of the variables that it runs with."""

    variable: Annotated[EnvironmentName, Field(description="A name in `environment`; its value is best the name of a secret.")]
    place: Literal["header", "query", "cookie"] = "header"
    name: Annotated[str, Field(min_length=1, max_length=100, description="Of the header, the field of the query, or the cookie.")] = (
        "Authorization"
    )
    scheme: Annotated[
        str, Field(max_length=40, description="Written before the value in a header; `Basic` encodes it, which is then `user:password`.")
    ] = ""

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        if self.place != "query" and not re.fullmatch(_HEADER_NAME, self.name):
            raise ValueError(f"`name` of a login in a {self.place} is made of letters, digits and !#$%&'*+.^_`|~-")
        if self.place == "header" and self.name.lower() in _NO_LOGINS:
            raise ValueError(f"a login cannot be shown in the header {self.name!r}, which says something else")
        return self


class LocalSource(HttpSource):
    """A project on this machine: of uv, started as `main.py --port N`, else of npm, started as `main.mjs --port N`."""

    type: Literal["local"] = "local"
    host_dir: Annotated[str, Field(min_length=1, description="Folder of the project, relative to the data folder.")]
    internal_port: Annotated[int, Field(ge=0, le=65535, description="A fixed port; 0 takes a free one.")] = 0
    content: Annotated[
        str | None, Field(description="The project's files in the content store, by the id of their archive; set at import.")
    ] = None
    environment: Environment = {}
    login: Login | None = None
    process: SharedProcess = None

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, on_host=True, stays_up=True, apart=True)


class DockerSource(HttpSource):
    """A container: one that is there (`container_id`), or one made of a Dockerfile, or of an image; the first of these that is given."""

    type: Literal["docker"] = "docker"
    container_id: str | None = None
    image: str | None = None
    dockerfile: Annotated[str | None, Field(description="Path of the Dockerfile in `host_dir`.")] = None
    host_dir: Annotated[str | None, Field(description="Folder it is built in, relative to the data folder.")] = None
    content: Annotated[
        str | None, Field(description="That folder's files in the content store, by the id of their archive; set at import.")
    ] = None
    internal_port: Annotated[
        int, Field(ge=0, le=65535, description="Port of the server in the container, on its loopback; 0: what the image exposes, or $PORT.")
    ] = 0
    command: Annotated[tuple[str, ...], Field(description="Run in the container instead of the image's own command.")] = ()
    environment: dict[str, str] = {}
    login: Login | None = None
    volumes: Annotated[
        dict[str, str],
        Field(description="Folders of the machine, by where the container sees them; a plain name is a folder of the tool's own."),
    ] = {}
    mem_limit: Annotated[str | None, Field(pattern=r"^\d+ *[kmgtKMGT]?[iI]?[bB]?$", description="`512m`, `2g`.")] = None
    nano_cpus: Annotated[int | None, Field(ge=1, description="Billionths of a core.")] = None
    pids_limit: Annotated[int | None, Field(ge=1, description="Processes and threads at once.")] = None
    use_gpu: bool = False
    gpu_count: Annotated[int, Field(ge=-1, description="-1: all of them.")] = -1
    process: SharedProcess = None

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.DOCKER, on_host=True, stays_up=True, apart=self.container_id is None and not self.volumes)


class RemoteSource(HttpSource):
    """A service somewhere else, reached over HTTP."""

    type: Literal["remote"] = "remote"
    remote_url: Annotated[str, Field(pattern=r"^https?://[^\s/]", description="Scheme, host and port, and a path prefix if there is one.")]
    remote_path: Annotated[str, Field(description="Path of the call; `endpoint_path` when empty.")] = ""
    remote_api_key: Annotated[SecretName | None, Field(description="The name of a secret, `secret:NAME`; never the key itself.")] = None
    auth_header: str = "Authorization"
    auth_scheme: Annotated[str, Field(description="Written before the key; empty sends the key alone.")] = "Bearer"
    auth_kind: Annotated[
        Literal["key", "basic", "cookie", "client_credentials"],
        Field(
            description="What the secret is: a key; `user:password`, sent in Base64; the value of the cookie `auth_cookie`; or "
            "`client_id:client_secret`, for which `token_url` gives a token."
        ),
    ] = "key"
    auth_cookie: Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,100}$")] = ""
    token_url: Annotated[
        str | None, Field(pattern=r"^https?://[^\s/@]+(/[^\s@]*)?$", description="Where OAuth 2 gives tokens to clients.")
    ] = None
    token_scopes: tuple[str, ...] = ()
    only_public: Annotated[bool, Field(description="Call it only at public addresses, as servers are called that a repository names.")] = (
        False
    )

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.REMOTE, elsewhere=True)

    @model_validator(mode="after")
    def _says_where_tokens_and_cookies_go(self) -> Self:
        if self.auth_kind == "client_credentials" and not self.token_url:
            raise ValueError("`auth_kind: client_credentials` needs a `token_url`")
        if self.auth_kind == "cookie" and not self.auth_cookie:
            raise ValueError("`auth_kind: cookie` needs the cookie's name in `auth_cookie`")
        return self

    @field_validator("remote_url")
    @classmethod
    def _carries_no_secret(cls, value: str) -> str:
        return _without_user(value)


class ScriptSource(Source):
    """A script that reads JSON from stdin and writes JSON to stdout."""

    type: Literal["script"] = "script"
    script_path: Annotated[str, Field(min_length=1, description="Relative to the folder in `content`; without that, to the script root.")]
    language: ScriptLanguage
    entry_point: str | None = None
    content: Annotated[
        str | None, Field(description="The script's folder in the content store, by the id of its archive; set at import.")
    ] = None
    environment: Environment = {}

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, on_host=True, apart=True)


class BuiltinSource(Source):
    """Code of the engine itself, by the name of its handler."""

    type: Literal["builtin"] = "builtin"
    handler: ToolId

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, of_engine=True)


class McpSource(Source):
    """A tool of an MCP server: one that is reached over HTTP (`url`), or one that is started here and speaks on its stdin and stdout.

    `host_dir` is started as `main.py`, or as `command` says; `command` alone is a program of the machine.
    """

    type: Literal["mcp"] = "mcp"
    tool_name: Annotated[str, Field(min_length=1, description="What the server calls it.")]
    url: Annotated[str | None, Field(description="Where the server is, with its path: `https://example.com/mcp`.")] = None
    transport: Annotated[
        Literal["streamable_http", "sse"], Field(description="How `url` is spoken to; `sse` is what servers of before 2025 speak.")
    ] = "streamable_http"
    command: Annotated[
        tuple[str, ...], Field(description="Program and arguments; the program is looked for in the project's environment first.")
    ] = ()
    host_dir: Annotated[str | None, Field(min_length=1, description="Folder of the server's project, relative to the data folder.")] = None
    content: Annotated[
        str | None, Field(description="The project's files in the content store, by the id of their archive; set at import.")
    ] = None
    environment: Annotated[
        dict[str, str], Field(description="Variables of the server that is started; `secret:NAME` as a value is that secret.")
    ] = {}
    process: SharedProcess = None
    remote_api_key: Annotated[SecretName | None, Field(description="The name of a secret, `secret:NAME`; never the key itself.")] = None
    auth_header: HeaderName = "Authorization"
    auth_scheme: Annotated[str, Field(description="Written before the key; empty sends the key alone.")] = "Bearer"
    only_public: Annotated[bool, Field(description="Ask it only at public addresses.")] = False

    @property
    def traits(self) -> Traits:
        if self.url is not None:
            return Traits(BackendRuntime.REMOTE, elsewhere=True)
        return Traits(BackendRuntime.LOCAL, on_host=True, stays_up=True, apart=True)

    def packed_as(self, archive: str) -> Self:
        """The same with these files; unchanged for a server elsewhere, or a program of the machine."""
        return self if self.host_dir is None else super().packed_as(archive)

    @field_validator("url")
    @classmethod
    def _carries_no_secret(cls, value: str | None) -> str | None:
        return value if value is None else _without_user(value)


PackedSource = LocalSource | DockerSource | McpSource
"""Sources whose implementation may be a folder of the data folder, `host_dir`, which is packed when it is imported."""


ToolSource = Annotated[
    LocalSource | DockerSource | RemoteSource | ScriptSource | BuiltinSource | McpSource,
    Field(discriminator="type"),
]


def backend_runtime_of(source: ToolSource) -> BackendRuntime:
    """The backend runtime that a source means."""
    return source.traits.runtime


def _without_user(url: str) -> str:
    """Raises ValueError for a URL that carries a user name or password."""
    authority = _AUTHORITY.match(url)
    if authority and "@" in authority[1]:
        # The URL itself is not repeated: it holds what must not be written down.
        raise ValueError("a user name or password does not belong in the URL: name a secret in `remote_api_key`")
    return url
