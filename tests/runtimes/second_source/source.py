"""A text with `$name` in it."""

from typing import Literal

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.sources.source import PackedSource, Traits

__all__ = ["TemplateSource"]


class TemplateSource(PackedSource):
    """`text.txt` of a folder; the parameters replace the names in it."""

    type: Literal["template"] = "template"
    host_dir: str
    content: str | None = None

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, on_host=True, apart=True)
