"""Makes the call of an agent's `<ACTION>` block, and answers with an observation."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError
from starlette.responses import Response

from api.calls import CallHeaders, ChosenId, end_of, require_callback, taken_call
from api.errors import Refusal, json_response
from api.ports import Dependencies, Injected
from api.problems import ProblemKind
from api.reading.action_xml import observation_xml, parsed_element
from api.reading.bodies import CallerBody, strict
from api.reading.strict_json import parsed_json, require_type
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.contracts.actions import ActionAnswer, Observation
from toolagent.contracts.callbacks import CallbackUrl
from toolagent.contracts.calls import Caller, CallMode, ToolCall
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.core.calls.action import Action, ActionRefused, Block, action_of, block_of, not_called, observation_of, refused, started
from toolagent.core.suggestions import nearest
from toolagent_service.calls.action_values import typed_inputs

XML = "application/xml"
_TEXTS = (XML, "text/xml", "text/plain")
_JSON = "application/json"
_LONGEST_ID = 128
_ADDRESS: TypeAdapter[str] = TypeAdapter(CallbackUrl)
_NO_BLOCK = "There is no <ACTION> block in the text; nothing was called."


class ActionBody(Contract):
    """The text of an agent with an `<ACTION>` block in it, and its caller."""

    model_config = strict({"text": "I look it up. <ACTION><calculator><expression>6 * 7</expression></calculator></ACTION>"})

    text: Annotated[str, Field(min_length=1)]
    caller: CallerBody = CallerBody()
    mode: Annotated[
        CallMode | None, Field(strict=False, description="As of `/run_tool`; unset: the attribute `mode` of the block, else `sync`.")
    ] = None
    callback_url: Annotated[CallbackUrl | None, Field(description="As of `/run_tool`; unset: the attribute of the block.")] = None


@dataclass(frozen=True, slots=True)
class Said:
    """The request of an agent. `chosen` has the call's id. `mode` and `callback_url` take precedence over those of the block."""

    text: str
    caller: Caller
    chosen: ChosenId
    wants_json: bool
    mode: CallMode | None = None
    callback_url: str | None = None


async def _take(request: Request, dependencies: Injected, chosen: CallHeaders) -> Said:
    """Raises Refusal for a body that is not text, RequestValidationError."""
    body, media_type = await request.body(), require_type(request, *_TEXTS, _JSON)
    wants_json = _JSON in request.headers.get("accept", "")
    if media_type == _JSON:
        given = await _body_of(body, dependencies.limits.max_values)
        is_json = wants_json or XML not in request.headers.get("accept", "")
        return Said(given.text, given.caller, chosen, is_json, given.mode, given.callback_url)
    try:
        return Said(body.decode().removeprefix("\ufeff"), Caller(), chosen, wants_json=wants_json)
    except UnicodeDecodeError as error:
        raise Refusal(ProblemKind.MALFORMED_BODY, f"The body is not UTF-8: byte {error.start}. Send text in UTF-8.") from error


TakenText = Annotated[Said, Depends(_take)]


async def action_answer(dependencies: Dependencies, said: Said) -> Response:
    """Answers 200 with an observation, also if the action fails. Only a bad request is answered with a problem."""
    around, call_id, note = said.text, "", ""
    try:
        block = block_of(said.text)
        around, note = block.around, not_called(block.more)
        observation, call_id = await _acted(dependencies, said, _action_in(block))
    except ActionRefused as refusal:
        observation = refused(refusal.tool_id, refusal.kind, str(refusal))
    observation = observation.model_copy(update={"note": note})
    headers = {"X-Call-Id": call_id} if call_id else {}
    if said.wants_json:
        return json_response(ActionAnswer(response_text=around, observation=observation, call_id=call_id), headers=headers)
    return Response(observation_xml(observation), headers=headers, media_type=XML)


def _action_in(block: Block) -> Action:
    if not block.xml:
        raise ActionRefused(_NO_BLOCK, kind="NoActionError")
    return action_of(parsed_element(block.xml))


async def _acted(dependencies: Dependencies, said: Said, action: Action) -> tuple[Observation, str]:
    # Databases refuse some characters, so only ids are looked up.
    is_id = len(action.tool_id) <= _LONGEST_ID and re.fullmatch(TOOL_ID_PATTERN, action.tool_id) is not None
    entry = await dependencies.registry.called(action.tool_id) if is_id else None
    if entry is None:
        raise await _unknown(dependencies, action.tool_id)
    params, issues = typed_inputs(entry.manifest.input_schema, action.inputs, dependencies.limits.max_values)
    if issues:
        listed = "; ".join(f"Input parameter {issue.path.removeprefix('$.')!r} {issue.message}" for issue in issues[:5])
        raise ActionRefused(f"{listed}.", kind="ParameterValidationError", tool_id=action.tool_id)
    mode, callback_url = said.mode or action.mode or CallMode.SYNC, said.callback_url or action.callback_url
    await _require_callback(dependencies, action.tool_id, mode, callback_url)
    call = ToolCall(tool_id=action.tool_id, params=params, caller=said.caller, mode=mode, callback_url=callback_url)
    taken = taken_call(call, dependencies, said.chosen)
    if mode is CallMode.SYNC:
        result = await end_of(dependencies.client, taken)
        return observation_of(result), result.call_id
    try:
        call_id = (await dependencies.client.start(taken.call, taken.call_id)).call_id
    except (CallRefusedError, AnswerPendingError) as error:
        return observation_of(error.result), error.result.call_id
    return started(action.tool_id, call_id), call_id


async def _require_callback(dependencies: Dependencies, tool_id: str, mode: CallMode, url: str | None) -> None:
    """Raises ActionRefused for a callback that is not a URL, or could not be posted, and for one of a synchronous call."""
    if url is None:
        return
    try:
        _ADDRESS.validate_python(url)
        await require_callback(url, mode, dependencies)
    except ValidationError as error:
        raise ActionRefused(f"callback_url: {error.errors()[0]['msg']}", tool_id=tool_id) from error
    except Refusal as refusal:
        raise ActionRefused(refusal.detail, tool_id=tool_id) from refusal


async def _unknown(dependencies: Dependencies, tool_id: str) -> ActionRefused:
    near = nearest(tool_id.lower()[:200], await dependencies.registry.list_ids())
    hint = f"Did you mean {', '.join(near)}?" if near else "GET /tools lists what there is."
    return ActionRefused(f"There is no tool {tool_id[:200]!r}. {hint}", kind="ToolNotFoundError", tool_id=tool_id[:200])


async def _body_of(body: bytes, max_values: int) -> ActionBody:
    value = await parsed_json(body, max_values)
    try:
        return ActionBody.model_validate(value)
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from error
