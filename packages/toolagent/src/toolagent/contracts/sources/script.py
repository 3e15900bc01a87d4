"""A script."""

from typing import Literal

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.identifiers import NonEmpty
from toolagent.contracts.sources.source import Environment, ScriptLanguage, Source, Traits

__all__ = ["ScriptSource"]


class ScriptSource(Source):
    """A script that reads JSON from stdin and writes JSON to stdout."""

    type: Literal["script"] = "script"
    script_path: NonEmpty
    """Relative to the folder in `content`, or without that to the script root."""
    language: ScriptLanguage
    entry_point: str | None = None
    content: str | None = None
    """The script's folder in the content store, by the id of its archive; set at import."""
    environment: Environment = {}

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, on_host=True, apart=True)

    @property
    def main(self) -> tuple[str, ScriptLanguage]:
        return self.script_path, self.language

    @property
    def remedy(self) -> str:
        return f"is the script {self.script_path!r}. Change that in its folder; it is imported again."
