"""KnowHub over HTTP."""

from toolagent.client.http_answers import parsed
from toolagent.client.http_requests import Requests
from toolagent.contracts.knowhub import KnowHubSync

__all__ = ["KnowHubRequests"]


class KnowHubRequests(Requests):
    """The methods of `ToolAgentHttp` for KnowHub. They raise as its other methods do."""

    def sync_knowhub(self, *, dry_run: bool = False) -> KnowHubSync:
        """Have the tools of both sides name each other, or see what would be changed."""
        return parsed(KnowHubSync, self._ask("POST", "/knowhub/sync", {"dry_run": dry_run}, unbounded=True))
