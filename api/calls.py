"""Makes calls of tools, and answers with their results."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header
from starlette.responses import Response

from api.errors import Refusal, bad_field, json_response, result_response
from api.ports import Calls, Dependencies, Injected
from api.problems import ProblemKind
from api.reading.bodies import RunToolBody, SelectToolBody
from api.security import BODY_SLACK
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.contracts.calls import CallMode, IdempotencyKey, ToolCall, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import Selection, TaskAccepted
from toolagent.contracts.identifiers import CallId
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.idempotency import call_id_for_key

_DERIVED = "With an idempotency key the call id follows from the key; leave out X-Call-Id."
_SYNC = "A callback belongs to `mode: async`; a synchronous call is answered with its result."
TWO_KEYS = "The header and `idempotency_key` in the body differ; give one of them."


@dataclass(frozen=True, slots=True)
class ChosenId:
    """The call's id in the headers."""

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
    """A call, and the id that its caller chose. `is_new`: no other call can have the id."""

    call: ToolCall
    call_id: str | None = None
    is_new: bool = False


async def take(body: RunToolBody, dependencies: Dependencies, chosen: ChosenId) -> TakenCall:
    """Raises Refusal."""
    await require_callback(body.callback_url, body.mode, dependencies)
    # The parameters are validated already. Validating many of them again would take as long as all the rest.
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
    require_size("The call", keyed, dependencies.limits.max_params_bytes)
    return TakenCall(keyed, chosen.call_id)


async def require_callback(url: str | None, mode: CallMode, dependencies: Dependencies) -> None:
    """Raises Refusal for a callback that could not be posted, and for one of a synchronous call."""
    if url is None:
        return
    refusal = _SYNC if mode is CallMode.SYNC else await dependencies.callback_refusal(url)
    if refusal is not None:
        raise bad_field("callback_url", refusal)


Selected = Annotated[TakenCall, Depends(_select)]


async def answer(client: Calls, taken: TakenCall) -> Response:
    """Answers 202 with the task for `mode: async`, otherwise the result. Raises ToolAgentError with the result to answer with."""
    if taken.call.mode is CallMode.SYNC:
        return result_response(await client.run(taken.call, taken.call_id))
    call_id = (await client.start(taken.call, taken.call_id)).call_id
    # A call that the caller did not name is new.
    known = await client.task(call_id) if taken.call_id or taken.call.idempotency_key else None
    return json_response(accepted(call_id, known), 202, {"Location": f"/tasks/{call_id}", "X-Call-Id": call_id})


def accepted(task_id: str, known: TaskView | None) -> TaskAccepted:
    """The answer for a task that was started. `known` is the task, if it may have been started before."""
    return TaskAccepted(task_id=task_id, status=known.status if known else TaskState.PENDING)


async def selection(client: Calls, taken: TakenCall) -> Response:
    """Answers with the result, or why there is none (yet)."""
    result = await end_of(client, taken)
    return result_response(result, selection_of(result))


def selection_of(result: ToolResult) -> Selection:
    return Selection(status=result.status, result=result.result, error=result.error)


async def end_of(client: Calls, taken: TakenCall) -> ToolResult:
    """The result of a call. A call that was refused, or has no answer yet, has a result too."""
    try:
        return await client.run(taken.call, taken.call_id, is_new=taken.is_new)
    except (CallRefusedError, AnswerPendingError) as error:
        return error.result


def require_size(name: str, value: Contract, most: int, remedy: str = "") -> None:
    """Raises Refusal for a value too large to be sent to Temporal. It is measured as sent: `1e15` grows when it is written out."""
    limit = most + BODY_SLACK
    if (size := len(value.model_dump_json().encode())) > limit:
        detail = f"{name} is {size} bytes of JSON when written out; at most {limit} are taken.{remedy}"
        raise Refusal(ProblemKind.BODY_TOO_LARGE, detail)
