"""Hosts, and the service at a glance, over HTTP."""

from toolagent.client.http_answers import parsed
from toolagent.client.http_paths import segment
from toolagent.client.http_requests import Requests
from toolagent.contracts.hosts import HostDrain, HostListing
from toolagent.contracts.system import SystemStatus

__all__ = ["HostRequests"]


class HostRequests(Requests):
    """The methods of `ToolAgentHttp` for hosts. They raise as its other methods do."""

    def hosts(self) -> HostListing:
        return parsed(HostListing, self._ask("GET", "/hosts"))

    def drain_host(self, host: str) -> HostDrain:
        """Have it take no new calls; again, that changes nothing."""
        return parsed(HostDrain, self._ask("POST", _path(host)))

    def undrain_host(self, host: str) -> HostDrain:
        """Have it take calls again."""
        return parsed(HostDrain, self._ask("DELETE", _path(host)))

    def drain_of(self, host: str) -> HostDrain:
        """How far it is."""
        return parsed(HostDrain, self._ask("GET", _path(host)))

    def system_status(self) -> SystemStatus:
        return parsed(SystemStatus, self._ask("GET", "/system/status"))


def _path(host: str) -> str:
    return f"/hosts/{segment(host)}/drain"
