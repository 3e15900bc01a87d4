"""Starts the tasks that make and repair tools."""

import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Header
from starlette.responses import Response

from api.errors import Refusal, json_response, unanswered
from api.json_object import JsonObject
from api.ports import Dependencies, Injected
from api.problems import ProblemKind
from api.reading.making_bodies import CreateToolBody, RepairToolBody
from api.reading.strict_json import parse_json
from api.views.found_tools import found_tool, unknown_tool
from toolagent.client.failures import MakingUnreachableError
from toolagent.contracts.calls import IdempotencyKey
from toolagent.contracts.http import ProblemField
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.making import MakeRequest, MakeTask
from toolagent.contracts.making_views import TaskSubmitted
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import StoreUnavailableError, TaskConflictError
from toolagent.core.task_requests import (
    AskedOtherwiseError,
    SpecError,
    SpecFault,
    described,
    prose_spec,
    read_spec,
    request_fingerprint,
    request_key,
    task_id_for,
)
from toolagent.validation.tool_names import tool_name_for
from toolagent_service.making.mendable import unmendable
from toolagent_service.making.task_views import begun

_ATTEMPTS = 8
"""How many ids are tried. An id has eight hex digits only, so another task may have it."""

Key = Annotated[
    IdempotencyKey | None, Header(alias="Idempotency-Key", description="The same key again is the same request, and is done once.")
]


@dataclass(frozen=True, slots=True)
class Taken:
    """A request. `is_named`: it names its tool, as an object must and prose does not."""

    request: MakeRequest
    is_named: bool = True


async def _take(body: CreateToolBody, idempotency_key: Key = None) -> Taken:
    try:
        spec, is_named = _spec_of(body.task_spec, body.description)
    except SpecError as error:
        raise _bad_spec(error) from error
    return Taken(_request(spec, body.description, body, idempotency_key), is_named)


async def _take_repair(tool_id: str, dependencies: Injected, idempotency_key: Key = None, body: RepairToolBody | None = None) -> Taken:
    if not re.fullmatch(TOOL_ID_PATTERN, tool_id):
        raise await unknown_tool(dependencies, tool_id)
    body = body or RepairToolBody()
    given: JsonObject = {"type": "repair_tool", "tool_id": tool_id, **body.model_dump(mode="json", exclude={"caller"})}
    try:
        spec = read_spec(given, place="")
    except SpecError as error:
        raise _bad_spec(error) from error
    return Taken(_request(spec, body.description, body, idempotency_key))


TakenRequest = Annotated[Taken, Depends(_take)]
TakenRepair = Annotated[Taken, Depends(_take_repair)]


async def submitted(dependencies: Dependencies, taken: Taken) -> Response:
    """Answers 202 with the task's id. Raises as `submitted_task`."""
    task = await submitted_task(dependencies, taken.request, is_named=taken.is_named)
    message = f"Task submitted: GET /tasks/{task.task_id} says how far it is, /tasks/{task.task_id}/events as it happens."
    answer = TaskSubmitted(task_id=task.task_id, status=task.status, message=message)
    return json_response(answer, 202, {"Location": f"/tasks/{task.task_id}"})


async def submitted_task(dependencies: Dependencies, asked: MakeRequest, *, is_named: bool) -> MakeTask:
    """Idempotent: the same request with the same key is the same task, also if the name derived for its tool has changed.

    Starts the workflow before writing the task's record. The workflow writes the record too, so a crash in between loses no task.

    Raises Refusal if the key was used for another request, if the tool cannot be repaired or is being repaired already, and, with the
    task's id, if Temporal does not answer.
    """
    for attempt in range(_ATTEMPTS):
        task_id = task_id_for(asked.spec, asked.key or uuid.uuid4().hex, attempt)
        request = asked.model_copy(update={"task_id": task_id})
        known = await dependencies.tasks.get(task_id)
        if known is not None and known.key != request.key:
            continue
        try:
            known = known or await _started(dependencies, request)
            require_one_request(known, request, is_named=is_named)
        except TaskConflictError as conflict:
            if not request.key:
                continue
            raise _used_key() from conflict
        return known
    raise _used_key()


async def _started(dependencies: Dependencies, request: MakeRequest) -> MakeTask:
    """Raises as `submitted_task`, and TaskConflictError."""
    if isinstance(request.spec, RepairTool):
        await _require_repairable(dependencies, request.spec.tool_id)
        await _require_only_repair(dependencies, request.spec)
    try:
        await dependencies.client.making.start(request)
    except AskedOtherwiseError as conflict:
        if not request.key or conflict.asked.key != request.key:
            raise
        request = conflict.asked
    except MakingUnreachableError as away:
        # Without a key it would be another task, with its own cost.
        remedy = f"GET /tasks/{request.task_id} says whether it was begun; only under the same Idempotency-Key is it the same task again."
        raise unanswered(away, remedy, task_id=request.task_id) from away
    task = begun(request, datetime.now(UTC))
    try:
        return await dependencies.tasks.create(task)
    except StoreUnavailableError:
        return task  # its workflow goes on, and writes the record


def require_one_request(task: MakeTask, request: MakeRequest, *, is_named: bool = True) -> None:
    """Raises TaskConflictError if a task has another request. The name of its tool is compared if the request `is_named`."""
    if not (is_named or isinstance(request.spec, RepairTool) or isinstance(task.spec, RepairTool)):
        request = request.model_copy(update={"spec": request.spec.model_copy(update={"tool_name": task.spec.tool_name})})
    before = MakeRequest(task_id=task.task_id, spec=task.spec, description=task.description, caller=task.caller, key=task.key)
    asked = [request_fingerprint(one.model_copy(update={"description": described(one)})) for one in (before, request)]
    if asked[0] != asked[1]:
        raise TaskConflictError(task.task_id)


def _spec_of(given: JsonObject | str | None, description: str) -> tuple[GithubDeploy | BuildTool | RepairTool, bool]:
    """The specification, and whether it names its tool. Raises SpecError."""
    if isinstance(given, dict):
        return read_spec(given, description), True
    text = (given or "").strip()
    if not text.startswith(("{", "[")):
        return prose_spec(text, description, tool_name_for(description, text)), False
    try:
        value = parse_json(text.encode())
    except Refusal as refusal:
        said = refusal.errors[0].message if refusal.errors else refusal.detail
        raise SpecError(SpecFault("task_spec", f"It begins like JSON and is none: {said}. Send an object, or prose.")) from refusal
    if not isinstance(value, dict):
        raise SpecError(SpecFault("task_spec", 'It is a list; one object is wanted, such as {"type": "build_tool", …}.'))
    return read_spec(value, description), True


def _request(
    spec: GithubDeploy | BuildTool | RepairTool, description: str, body: CreateToolBody | RepairToolBody, key: str | None
) -> MakeRequest:
    # `submitted_task` chooses the id.
    return MakeRequest(task_id="", spec=spec, description=description, caller=body.caller, key=request_key(body.caller.caller_id, key))


def _bad_spec(error: SpecError) -> Refusal:
    errors = tuple(ProblemField(field=fault.field, message=fault.message) for fault in error.faults)
    return Refusal(ProblemKind.INVALID_REQUEST, f"This is no task that can be begun: {error}", errors=errors)


def _used_key() -> Refusal:
    message = "This key was used for another request: other specification, description or caller. Choose a new one."
    field = ProblemField(field="Idempotency-Key", message=message)
    return Refusal(ProblemKind.IDEMPOTENCY_CONFLICT, message, errors=(field,))


async def _require_repairable(dependencies: Dependencies, tool_id: str) -> None:
    """Raises Refusal for a tool that does not exist, or cannot be repaired."""
    why_not = unmendable(await found_tool(dependencies, tool_id, dependencies.registry.entry))
    if why_not:
        raise Refusal(ProblemKind.NOT_REPAIRABLE, why_not)


async def _require_only_repair(dependencies: Dependencies, spec: RepairTool) -> None:
    """Raises Refusal while another task repairs the tool. Two requests at the same moment may both begin; one version becomes active."""
    for status in (TaskState.RUNNING, TaskState.PENDING):
        for task in await dependencies.tasks.page(status=status, spec_type=spec.type, tool_id=spec.tool_id, limit=1, before=None):
            message = f"{spec.tool_id!r} is being repaired already, by {task.task_id}."
            remedy = f"GET /tasks/{task.task_id} says how far it is, POST /tasks/{task.task_id}/messages tells it what you know."
            raise Refusal(ProblemKind.REPAIR_RUNNING, f"{message} {remedy}", details={"task_id": task.task_id})
