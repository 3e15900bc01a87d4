"""Making tasks of the fake client: it records starts, cancellations and messages, and makes nothing."""

from dataclasses import dataclass, field

from toolagent.client.failures import MakingUnreachableError
from toolagent.contracts.making import Guidance, MakeRequest
from toolagent.core.task_requests import AskedOtherwiseError, request_fingerprint

__all__ = ["FakeMaking"]


@dataclass
class FakeMaking:
    """Keeps the contract of `Making`. `away` simulates a silent Temporal server; `at_work` are the tasks that take messages."""

    away: bool = False
    started: dict[str, MakeRequest] = field(default_factory=dict[str, MakeRequest])
    at_work: set[str] = field(default_factory=set[str])
    cancelled: list[str] = field(default_factory=list[str])
    said: list[tuple[str, Guidance]] = field(default_factory=list[tuple[str, Guidance]])

    async def start(self, request: MakeRequest) -> None:
        """Raises AskedOtherwiseError for another request under the same id, MakingUnreachableError while away."""
        self._require_presence()
        known = self.started.setdefault(request.task_id, request)
        if request_fingerprint(known) != request_fingerprint(request):
            raise AskedOtherwiseError(known)
        if known is request:
            self.at_work.add(request.task_id)

    async def cancel(self, task_id: str) -> bool:
        """False when it was not started here. Raises MakingUnreachableError while away."""
        self._require_presence()
        if task_id in self.at_work:
            self.cancelled.append(task_id)
        return task_id in self.started

    async def guide(self, task_id: str, guidance: Guidance) -> bool:
        """False when the task does not run. Raises MakingUnreachableError while away."""
        self._require_presence()
        if task_id in self.at_work:
            self.said.append((task_id, guidance))
        return task_id in self.at_work

    def _require_presence(self) -> None:
        if self.away:
            raise MakingUnreachableError("Temporal does not answer.")
