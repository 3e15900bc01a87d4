"""What the front door needs of the IM client of its process."""

from typing import Protocol

from pydantic import JsonValue

from toolagent.contracts.im import ImFunctionOffer
from toolagent.contracts.system import ImStatus


class Im(Protocol):
    """The IM client of this process."""

    def status(self) -> ImStatus: ...
    def chat_ids(self) -> tuple[str, ...]: ...


class ImFunctions(Protocol):
    """`engine.im.tools.ImFunctions` is one; its docstrings say what is promised and raised."""

    @property
    def offers(self) -> tuple[ImFunctionOffer, ...]: ...
    async def run(self, name: str, given: dict[str, JsonValue], use: str) -> dict[str, JsonValue]: ...
