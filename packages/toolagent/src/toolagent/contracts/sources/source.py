"""The base classes of all sources, and of those that are reached over HTTP, with the traits that the rest of the service uses."""

import re
from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import EnvironmentName, GroupId, HeaderName

__all__ = [
    "BodyEncoding",
    "Environment",
    "HttpMethod",
    "HttpSource",
    "PackedSource",
    "ParameterStyle",
    "ScriptLanguage",
    "SharedProcess",
    "Source",
    "Traits",
    "WithoutUser",
]

SharedProcess = Annotated[
    GroupId | None,
    Field(description="Tools with the same process name, files and rights run in one process, usually a group; unset: its own process."),
]

Environment = Annotated[
    dict[EnvironmentName, str], Field(description="Environment variables: texts, or `secret:NAME`, also within an address.")
]

HttpMethod = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

BodyEncoding = Literal["json", "form", "multipart", "octets", "none"]

ParameterStyle = Literal["comma", "space", "pipe", "deep", "fields", "json"]
"""`a,b`, `a b`, `a|b`, `name[key]=value`, `key=value` for each field of the object, or the JSON text of the value."""

_SECRET = re.compile(r"\bsecret:([A-Z][A-Z0-9_]*)")
_AUTHORITY = re.compile(r"[^:]*://([^/?#]*)")


def _without_user(url: str) -> str:
    """Raises ValueError for a URL that carries a user name or password."""
    authority = _AUTHORITY.match(url)
    if authority and "@" in authority[1]:
        # The message does not repeat the URL, because that holds a secret.
        raise ValueError("a user name or password does not belong in the URL: name a secret in `remote_api_key`")
    return url


WithoutUser = AfterValidator(_without_user)


class ScriptLanguage(StrEnum):
    PYTHON = "python"
    NODEJS = "nodejs"
    BUN = "bun"


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of a source that the rest of the service uses, whatever its type."""

    runtime: BackendRuntime
    on_host: bool = False
    """It is started on one host, and can be called only from there."""
    stays_up: bool = False
    """Its process stays up between calls, and can be killed."""
    apart: bool = False
    """The sandbox contains all its effects: made-up input reaches nothing that the tool does not declare."""
    servers: tuple[str, ...] = ()
    """URLs of foreign servers: first the one that gets the calls, then others that get its secrets. Empty: it is started here."""
    shown: tuple[str, ...] = ()
    """The texts that these servers get, in which secrets are named."""
    only_public: bool = False
    """Whether these servers may be reached at public addresses only."""
    handler: str | None = None
    """The handler of a built-in tool, which cannot be removed; None for all others."""
    asks: bool = False
    """It may ask its caller questions and log during a call."""
    in_blocks: bool = False
    """Without an output schema it answers in blocks of content: `text`, and other blocks in `content`."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that these servers get."""
        return tuple(name for text in self.shown for name in _SECRET.findall(text))

    @property
    def elsewhere(self) -> bool:
        """Whether it runs elsewhere."""
        return bool(self.servers)


class Source(Contract):
    """The base class of sources. Properties that a type does not override mean that it lacks the feature, which is always safe."""

    mended: ClassVar[tuple[str, ...]] = ()
    """The fields that a repair may change; none if it cannot be repaired here."""

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @property
    def archive(self) -> str | None:
        """The archive of its files in the content store, if any."""
        return getattr(self, "content", None)

    @property
    def folder(self) -> str | None:
        """The folder, in the data folder, that is packed at import."""
        return None

    @property
    def shared_process(self) -> str | None:
        """The name of the process that it shares; None if it shares none."""
        return getattr(self, "process", None)

    @property
    def project(self) -> str | None:
        """`folder`, if it is a project of uv or npm that is started on the host."""
        return None

    @property
    def main(self) -> tuple[str, ScriptLanguage] | None:
        """The file that is started, which declares its own dependencies; None if only its project does."""
        return None

    @property
    def remedy(self) -> str:
        """Why its files cannot be changed here, and what to do instead, to follow `The tool X`; empty if they can."""
        return "" if self.mended else "is of a type that is not repaired here. Change it where it comes from, and register that."

    def packed_as(self, archive: str | None) -> Self:
        """The source with these files; unchanged if its type has none."""
        return self.model_copy(update={"content": archive}) if "content" in type(self).model_fields else self


class PackedSource(Source):
    """A source whose files are a folder of the data folder, `host_dir`, packed as `content`. Tools may share a `process`."""

    @property
    def folder(self) -> str | None:
        return getattr(self, "host_dir", None)


class HttpSource(Source):
    """A source that is reached over HTTP."""

    endpoint_path: Annotated[str, Field(pattern=r"^/")] = "/"
    """Path of the call. `{name}` is replaced by that parameter."""
    http_method: HttpMethod = "POST"
    health_path: Annotated[str, Field(pattern=r"^/")] = "/health"
    """Polled until it answers 200. For the default path, and for a missing path, any answer below 500 is enough."""
    query_parameters: tuple[str, ...] = ()
    """Parameters in the query although the method has a body. GET and DELETE do not need this."""
    header_parameters: dict[str, HeaderName] = {}
    """Parameters in a header, with its name."""
    body_parameter: str | None = None
    """The parameter that is the whole body; unset: an object of all other parameters."""
    parameter_styles: dict[str, ParameterStyle] = {}
    """Styles of lists and objects in path, query or header, if not the default."""
    body_encoding: BodyEncoding = "json"
    """The encoding of the body; `octets`: the content of the file in `body_parameter`."""
    body_media_type: Annotated[str, Field(pattern=r"^([\w.+*-]+/[\w.+*-]+)?$")] = ""
    """The media type of octets or JSON; empty: `application/octet-stream` or `application/json`."""
    file_parameters: tuple[str, ...] = ()
    """Parameters of the format `file-path` whose files are sent, in a body other than JSON."""
    gives_text: bool = False
    """Whether it may answer with a text or XML: that text is the result, or the JSON object or list in it."""
