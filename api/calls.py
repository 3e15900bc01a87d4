"""From a request to a call, and from its end to an answer."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header
from starlette.responses import Response

from api.errors import Refusal, bad_field, result_response
from api.ports import Calls, Dependencies, Injected, Limits
from api.problems import ProblemKind
from api.reading.bodies import RunToolBody, SelectToolBody
from api.security import BODY_SLACK
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.contracts.calls import CallMode, IdempotencyKey, ToolCall, ToolResult
from toolagent.contracts.http import Selection, TaskAccepted
from toolagent.contracts.identifiers import CallId
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.idempotency import call_id_for_key

_DERIVED = "With an idempotency key the call id follows from the key; leave out X-Call-Id."
_SYNC = "A callback belongs to `mode: async`; a synchronous call is answered with its result."
TWO_KEYS = "The header and `idempotency_key` in the body differ; give one of them."


@dataclass(frozen=True, slots=True)
class ChosenId:
    """What the headers say of the call's id."""

    key: str | None
    call_id: str | None


KeyHeader = Annotated[
    IdempotencyKey | None, Header(alias="Idempotency-Key", description="The same key again is the same call, and runs once.")
]
IdHeader = Annotated[CallId | None, Header(alias="X-Call-Id", description="The call's id, where there is no key.")]


async def _chosen(idempotency_key: KeyHeader = None, x_call_id: IdHeader = None) -> ChosenId:
    return ChosenId(idempotency_key, x_call_id)


CallHeaders = Annotated[ChosenId, Depends(_chosen)]


@dataclass(frozen=True, slots=True)
class TakenCall:
    """A call, and the id its caller chose for it. `is_new`: nobody else can have that id."""

    call: ToolCall
    call_id: str | None = None
    is_new: bool = False


async def take(body: RunToolBody, dependencies: Dependencies, chosen: ChosenId) -> TakenCall:
    """Raises Refusal."""
    await require_callback(body.callback_url, body.mode, dependencies)
    # The parameters have been checked: to check many of them again takes as long as all the rest.
    call = ToolCall.model_validate({**vars(body), "caller": vars(body.caller), "params": {}})
    return taken_call(call.model_copy(update={"params": body.params}), dependencies, chosen)


async def _select(body: SelectToolBody, dependencies: Injected, chosen: CallHeaders) -> TakenCall:
    return taken_call(ToolCall(tool_id=body.tool_id, params=body.params, stream=body.stream), dependencies, chosen)


def taken_call(call: ToolCall, dependencies: Dependencies, chosen: ChosenId) -> TakenCall:
    """Raises Refusal when header and body, or the two headers, disagree on the id."""
    if chosen.key is not None and call.idempotency_key not in {None, chosen.key}:
        raise bad_field("Idempotency-Key", TWO_KEYS)
    key = chosen.key if chosen.key is not None else call.idempotency_key
    if key is not None and chosen.call_id not in {None, call_id_for_key(call.caller.caller_id, key)}:
        raise bad_field("X-Call-Id", _DERIVED)
    keyed = call if key == call.idempotency_key else call.model_copy(update={"idempotency_key": key})
    return TakenCall(bounded(keyed, dependencies.limits), chosen.call_id)


async def require_callback(url: str | None, mode: CallMode, dependencies: Dependencies) -> None:
    """Raises Refusal for a callback that nobody waits for, or that would never be posted."""
    if url is None:
        return
    refusal = _SYNC if mode is CallMode.SYNC else await dependencies.callback_refusal(url)
    if refusal is not None:
        raise bad_field("callback_url", refusal)


Selected = Annotated[TakenCall, Depends(_select)]


async def answer(client: Calls, taken: TakenCall) -> Response:
    """202 with the task for `mode: async`, else the result. Raises ToolAgentError, which carries the result to answer with."""
    if taken.call.mode is CallMode.SYNC:
        return result_response(await client.run(taken.call, taken.call_id))
    call_id = (await client.start(taken.call, taken.call_id)).call_id
    # Only a caller who can name a call can have started it before.
    known = await client.task(call_id) if taken.call_id or taken.call.idempotency_key else None
    task = TaskAccepted(task_id=call_id, status=known.status if known else TaskState.PENDING)
    headers = {"Location": f"/tasks/{task.task_id}", "X-Call-Id": task.task_id}
    return Response(task.model_dump_json(), 202, headers, "application/json")


async def selection(client: Calls, taken: TakenCall) -> Response:
    """The result, or why there is none (yet)."""
    result = await end_of(client, taken)
    return result_response(result, selection_of(result).model_dump_json())


def selection_of(result: ToolResult) -> Selection:
    return Selection(status=result.status, result=result.result, error=result.error)


async def end_of(client: Calls, taken: TakenCall) -> ToolResult:
    """The result, or in its form why there is none (yet)."""
    try:
        return await client.run(taken.call, taken.call_id, is_new=taken.is_new)
    except (CallRefusedError, AnswerPendingError) as error:
        return error.result


def bounded(call: ToolCall, limits: Limits) -> ToolCall:
    """`1e15` grows when it is written out: what goes to Temporal is measured as it goes there."""
    limit = limits.max_params_bytes + BODY_SLACK
    if (size := len(call.model_dump_json().encode())) > limit:
        raise Refusal(ProblemKind.BODY_TOO_LARGE, f"The call is {size} bytes of JSON when written out; at most {limit} are taken.")
    return call
