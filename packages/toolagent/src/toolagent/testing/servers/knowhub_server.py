"""KnowHub for tests, over real HTTP on 127.0.0.1: resources are listed, read and changed."""

from collections.abc import Iterable

from pydantic import JsonValue

from toolagent.testing.servers.knowhub_app import EXAMPLES, KnowHubApp, KnowHubFault
from toolagent.testing.servers.serving import ServerThread
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["KnowHubServer"]


class KnowHubServer(ServerThread):
    """`with KnowHubServer() as server:` and `server.url` is for `TOOL_AGENT_KNOWHUB_URL`."""

    def __init__(
        self,
        port: int = 0,
        resources: Iterable[dict[str, JsonValue]] = EXAMPLES,
        *,
        key: str = "",
        tagged: bool = True,
        faults: Iterable[KnowHubFault] = (),
    ) -> None:
        self._app_of = KnowHubApp(resources, key, tagged, ToldFaults(KnowHubFault, faults))
        super().__init__(self._app_of.application(), port)

    @property
    def patches(self) -> tuple[str, ...]:
        """The ids of resources that were changed over HTTP, in order."""
        return tuple(self._app_of.patches)

    def fail(self, fault: KnowHubFault) -> None:
        """Have this fault from now on."""
        self._app_of.faults.add(fault)

    def resource(self, resource_id: str) -> dict[str, JsonValue]:
        """As it is now. Raises KeyError."""
        return self._app_of.resource(resource_id)
