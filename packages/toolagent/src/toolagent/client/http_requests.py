"""What the parts of `ToolAgentHttp` stand on: one way to ask."""

from abc import ABC, abstractmethod

import httpx
from pydantic import JsonValue

__all__ = ["Requests"]


class Requests(ABC):
    """Asks the service. `unbounded`: the answer is waited for as long as it takes."""

    @abstractmethod
    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, JsonValue] | None = None,
        *,
        unbounded: bool = False,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response: ...
