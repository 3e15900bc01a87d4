"""Deciding about a call: the first and the placing step."""

from temporalio import activity

from engine.calls.admission import Admissions
from engine.runtimes.supervisor import Supervisor
from toolagent.client import names
from toolagent.contracts.steps import Admission, AdmitRequest, Placement, PlaceRequest

__all__ = ["Admit"]


class Admit:
    """Joins what the registry says of a call with what runs on this host."""

    def __init__(self, admissions: Admissions, supervisor: Supervisor) -> None:
        self._admissions = admissions
        self._supervisor = supervisor

    @activity.defn(name=names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        """What the caller got wrong is an answer; a database that is away is raised, and tried again."""
        return await self._admissions.admit(request, self._supervisor.is_ready)

    @activity.defn(name=names.PLACE)
    async def place(self, request: PlaceRequest) -> Placement:
        return await self._admissions.place(request)
