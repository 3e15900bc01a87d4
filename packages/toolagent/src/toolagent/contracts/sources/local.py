"""A project on this machine."""

from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.identifiers import NonEmpty
from toolagent.contracts.sources.login import Login
from toolagent.contracts.sources.source import Environment, HttpSource, PackedSource, ScriptLanguage, SharedProcess, Traits

__all__ = ["LocalSource"]


class LocalSource(HttpSource, PackedSource):
    """A project on this machine: of uv, started as `main.py --port N`, or of npm, started as `main.mjs --port N`."""

    mended = ("host_dir", "content", "endpoint_path", "http_method")

    type: Literal["local"] = "local"
    host_dir: NonEmpty
    """Folder of the project, relative to the data folder."""
    internal_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """A fixed port; 0: any free one."""
    content: str | None = None
    """The project's files in the content store, by the id of their archive; set at import."""
    environment: Environment = {}
    login: Login | None = None
    process: SharedProcess = None

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, on_host=True, stays_up=True, apart=True)

    @property
    def project(self) -> str:
        return self.host_dir

    @property
    def main(self) -> tuple[str, ScriptLanguage]:
        return "main.py", ScriptLanguage.PYTHON
