"""Tools that are part of the engine."""

from typing import Literal

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.sources.source import Source, Traits

__all__ = ["BuiltinSource"]


class BuiltinSource(Source):
    """Code of the engine, by the name of its handler."""

    type: Literal["builtin"] = "builtin"
    handler: ToolId

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.LOCAL, handler=self.handler)

    @property
    def remedy(self) -> str:
        return "is a part of this service. Report the error to its operator."
