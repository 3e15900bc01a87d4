"""What every type of source is, and those that are reached over HTTP; and what the rest of the service asks of them."""

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
    Field(
        description="Tools whose sources name the same process, files and rights run in one, usually a group's; unset: in one of its own."
    ),
]

Environment = Annotated[
    dict[EnvironmentName, str], Field(description="Variables that it runs with: texts, or `secret:NAME`, also in the query of an address.")
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
        # The URL itself is not repeated: it holds what must not be written down.
        raise ValueError("a user name or password does not belong in the URL: name a secret in `remote_api_key`")
    return url


WithoutUser = AfterValidator(_without_user)


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
    servers: tuple[str, ...] = ()
    """Those of others, as URLs: first the one that calls go to, then who else is shown its secrets. Empty: it is started here."""
    shown: tuple[str, ...] = ()
    """What of it these servers see, where secrets are named."""
    only_public: bool = False
    """These may be reached at public addresses only."""
    handler: str | None = None
    """The part of the service that it is, which cannot be removed; None for all others."""
    asks: bool = False
    """It may ask its caller something while a call goes on, and log."""
    in_blocks: bool = False
    """Without an output schema it answers in blocks of content: `text`, and what is no text in `content`."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that these servers are shown."""
        return tuple(name for text in self.shown for name in _SECRET.findall(text))

    @property
    def elsewhere(self) -> bool:
        """Somebody else runs it."""
        return bool(self.servers)


class Source(Contract):
    """What every type of source is. What a type does not say of itself is taken to be absent, which is always safe."""

    mended: ClassVar[tuple[str, ...]] = ()
    """The fields that a repair may change; none where nothing here can mend it."""

    @property
    @abstractmethod
    def traits(self) -> Traits: ...

    @property
    def archive(self) -> str | None:
        """Its files in the content store, where it has any."""
        return getattr(self, "content", None)

    @property
    def folder(self) -> str | None:
        """The folder of the data folder that is packed when it is imported."""
        return None

    @property
    def shared_process(self) -> str | None:
        """The name of the process that it shares; None for one that has its own, or none."""
        return getattr(self, "process", None)

    @property
    def project(self) -> str | None:
        """`folder`, where it is a project of uv or npm that is started on the host."""
        return None

    @property
    def main(self) -> tuple[str, ScriptLanguage] | None:
        """The file that is started, and which brings its own dependencies; None where only its project has them."""
        return None

    @property
    def remedy(self) -> str:
        """Why its files cannot be changed here, and what to do instead, as what follows `The tool X`; empty when they can."""
        return "" if self.mended else "is of a type that is not repaired here. Change it where it comes from, and register that."

    def packed_as(self, archive: str | None) -> Self:
        """The same with these files; unchanged where it has none."""
        return self.model_copy(update={"content": archive}) if "content" in type(self).model_fields else self


class PackedSource(Source):
    """Its implementation may be a folder of the data folder, `host_dir`, which is packed as `content`. Tools may share a `process`."""

    @property
    def folder(self) -> str | None:
        return getattr(self, "host_dir", None)


class HttpSource(Source):
    """What all sources that are reached over HTTP say of it."""

    endpoint_path: Annotated[str, Field(pattern=r"^/")] = "/"
    """Path of the call; `{name}` is filled from the parameters."""
    http_method: HttpMethod = "POST"
    health_path: Annotated[str, Field(pattern=r"^/")] = "/health"
    """Asked until it answers 200; of the default one, and where a path is not there, any answer below 500 will do."""
    query_parameters: tuple[str, ...] = ()
    """Parameters that go into the query although the method has a body; GET and DELETE need none."""
    header_parameters: dict[str, HeaderName] = {}
    """Parameters that go into a header, with its name."""
    body_parameter: str | None = None
    """The parameter that is the whole body; unset: an object of all that go nowhere else."""
    parameter_styles: dict[str, ParameterStyle] = {}
    """Lists and objects in path, query or header that are not written as usual."""
    body_encoding: BodyEncoding = "json"
    """How the body is written; `octets`: `body_parameter` names a file, sent as it is."""
    body_media_type: Annotated[str, Field(pattern=r"^([\w.+*-]+/[\w.+*-]+)?$")] = ""
    """The media type of octets; empty: `application/octet-stream`."""
    file_parameters: tuple[str, ...] = ()
    """Parameters of the format `file-path` whose files are sent, in a body that is not JSON."""
