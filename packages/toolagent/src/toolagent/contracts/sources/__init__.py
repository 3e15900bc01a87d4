"""Sources of tools: one module and one line here for each type, in a union tagged by `type`."""

from typing import Annotated

from pydantic import Field

from toolagent.contracts.sources.builtin import BuiltinSource
from toolagent.contracts.sources.docker import DockerSource
from toolagent.contracts.sources.local import LocalSource
from toolagent.contracts.sources.login import Login
from toolagent.contracts.sources.mcp import McpHints, McpSource, Revision
from toolagent.contracts.sources.remote import Envelope, RemoteSource
from toolagent.contracts.sources.script import ScriptSource
from toolagent.contracts.sources.source import (
    BodyEncoding,
    HttpMethod,
    HttpSource,
    PackedSource,
    ParameterStyle,
    ScriptLanguage,
    Source,
    Traits,
)

__all__ = [
    "BodyEncoding",
    "BuiltinSource",
    "DockerSource",
    "Envelope",
    "HttpMethod",
    "HttpSource",
    "LocalSource",
    "Login",
    "McpHints",
    "McpSource",
    "PackedSource",
    "ParameterStyle",
    "RemoteSource",
    "Revision",
    "ScriptLanguage",
    "ScriptSource",
    "Source",
    "ToolSource",
    "Traits",
]

ToolSource = Annotated[
    LocalSource
    | DockerSource
    | RemoteSource
    | ScriptSource
    | BuiltinSource
    | McpSource,
    Field(discriminator="type"),
]  # fmt: skip
"""In the order of the API's description."""
