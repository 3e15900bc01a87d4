"""An IM server for tests, over a real WebSocket on 127.0.0.1."""

from collections.abc import Iterable

from pydantic import JsonValue

from toolagent.contracts.im import ImMessage
from toolagent.testing.servers.im_app import ImApp
from toolagent.testing.servers.im_faults import ImFault
from toolagent.testing.servers.serving import ServerThread
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["ImServer"]


class ImServer(ServerThread):
    """`with ImServer() as server:` and `server.im_url` is for `TOOL_AGENT_IM_URL`. What it keeps outlives a stop and a start of it."""

    def __init__(self, port: int = 0, *, token: str | None = None, faults: Iterable[ImFault] = ()) -> None:
        self._app_of = ImApp(token, ToldFaults(ImFault, faults))
        super().__init__(self._app_of.application(), port)

    @property
    def im_url(self) -> str:
        return self.url.replace("http://", "ws://")

    def fail(self, fault: ImFault) -> None:
        """Have this fault from now on."""
        self._app_of.faults.add(fault)

    def messages_to(self, contact: str) -> tuple[ImMessage, ...]:
        """All that were accepted for this contact, in their order."""
        return tuple(message for message in tuple(self._app_of.messages) if message.receiver == contact)

    def state(self) -> dict[str, JsonValue]:
        """What `/control/state` answers: `contacts` with what waits for them, and all `messages`."""
        return self._app_of.shown()
