"""Submits tasks for a chat; the same request is the same task, however often it is made."""

from datetime import UTC, datetime
from typing import Protocol

from engine.registry.registry import ToolRegistry
from engine.store.tasks import TaskTable
from engine.tasks.subjects import repair_under_way
from toolagent.contracts.calls import Caller
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool
from toolagent.core.failures import TaskConflictError
from toolagent.core.task_requests import AskedOtherwiseError, request_key, task_id_for
from toolagent_service.making.mendable import unmendable
from toolagent_service.making.task_views import begun

Spec = GithubDeploy | BuildTool | RepairTool

_ATTEMPTS = 8
"""Ids that are tried: eight hex digits may collide with those of another request."""


class SubmissionRefused(Exception):
    """The task cannot be begun; the message says why, for a model or a person."""


class Starting(Protocol):
    """`toolagent.client.making.Making` is one."""

    async def start(self, request: MakeRequest) -> None: ...


class Submissions:
    """Raises StoreUnavailableError, and what `start` raises if Temporal does not answer."""

    def __init__(self, making: Starting, tasks: TaskTable, registry: ToolRegistry) -> None:
        self._making, self._tasks, self._registry = making, tasks, registry

    async def submit(self, chat_id: str, spec: Spec, key: str) -> str:
        """Begins the task, and returns its id. `key` identifies the request within the chat. Raises SubmissionRefused."""
        caller = Caller(caller_id=chat_id, caller_type="conversation_agent", conversation_id=chat_id)
        own = request_key(chat_id, key)
        for attempt in range(_ATTEMPTS):
            request = MakeRequest(task_id=task_id_for(spec, own, attempt), spec=spec, caller=caller, key=own)
            known = await self._tasks.get(request.task_id)
            if known is not None and known.key != own:
                continue
            if known is None:
                await self._require_sensible(spec)
                try:
                    await self._making.start(request)
                except AskedOtherwiseError as conflict:
                    if conflict.asked.key != own:
                        continue
                    # A version that derived another name began it. Beginning it anew would pay twice.
                    request = conflict.asked
                except TaskConflictError as conflict:
                    # More likely this request, begun by another version, than a collision of ids. Do not pay for a second one.
                    told = f"Task {request.task_id} was begun already, by another version of the service: ask for it by its id."
                    raise SubmissionRefused(told) from conflict
                # Record it before the id is told: an unknown task counts as forgotten.
                await self._tasks.create(begun(request, datetime.now(UTC)))
            return request.task_id
        raise SubmissionRefused("No id is free for this task; ask again in other words.")

    async def _require_sensible(self, spec: Spec) -> None:
        if not isinstance(spec, RepairTool):
            return
        entry = await self._registry.entry(spec.tool_id)
        if entry is None:
            raise SubmissionRefused(f"There is no tool {spec.tool_id!r} to repair.")
        if why_not := unmendable(entry):
            raise SubmissionRefused(why_not)
        if (repair := await repair_under_way(self._tasks, spec.tool_id)) is not None:
            raise SubmissionRefused(f"{spec.tool_id!r} is being repaired already, by {repair.task_id}.")
