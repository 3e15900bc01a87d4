"""RunComfy for tests, over real HTTP and WebSocket on 127.0.0.1: servers are rented, become ready, run prompts and are stopped."""

from collections.abc import Iterable

from pydantic import JsonValue

from toolagent.testing.servers.runcomfy_app import Account, RunComfyApp
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.serving import ServerThread
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["RunComfyServer"]


class RunComfyServer(ServerThread):
    """`with RunComfyServer() as server:` and `server.api_url` is for `TOOL_AGENT_RUNCOMFY_URL`."""

    def __init__(
        self,
        port: int = 0,
        account: Account | None = None,
        *,
        start_s: float = 0.2,
        hidden_s: float = 0.0,
        node_s: float = 0.05,
        faults: Iterable[Fault] = (),
    ) -> None:
        self.account = account or Account()
        self._app_of = RunComfyApp(self.account, start_s, hidden_s, node_s, ToldFaults(Fault, faults))
        super().__init__(self._app_of.application(), port)

    @property
    def api_url(self) -> str:
        return f"{self.url}/prod/api"

    def fail(self, fault: Fault) -> None:
        """Have this fault from now on."""
        self._app_of.faults.add(fault)

    def ledger(self) -> dict[str, JsonValue]:
        """What `/control/ledger` answers: `launched`, `stopped`, `vanished`, `running` and each server with its times."""
        return self._app_of.ledger.shown()
