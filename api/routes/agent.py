"""Calls that agents write as `<ACTION>` blocks."""

from fastapi import APIRouter
from starlette.responses import Response

from api.actions import XML, ActionBody, TakenText, action_answer
from api.documentation import JSON_BODY, problem_responses
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.action_xml import observation_xml
from toolagent.contracts.actions import ActionAnswer, Observation

router = APIRouter(tags=["calls"])

_ACTION = """Let me work it out.
<ACTION>
  <tool_id>calculator</tool_id>
  <inputs>
    <input name="expression"><![CDATA[6 * 7]]></input>
  </inputs>
</ACTION>"""
_CONTENT = 'Tool calculator executed successfully. Output: {"result": 42}'
_OBSERVED = ActionAnswer(
    response_text="Let me work it out.",
    observation=Observation(tool_id="calculator", status="success", content=_CONTENT),
    call_id="call-5f0c8e0a7d3b4c4f9c0f2d1f6a3b7e21",
)
_TEXT = {"schema": {"type": "string"}, "example": _ACTION}


@router.post(
    "/agent/action",
    summary="Do what an agent's `<ACTION>` asks for",
    response_model=ActionAnswer,
    responses={
        **problem_responses(ProblemKind.MALFORMED_BODY, *JSON_BODY),
        200: {
            "description": "An observation: what came of the action, also when nothing could be called. JSON where `Accept` asks for it.",
            "content": {
                XML: {
                    "schema": {"type": "string"},
                    "example": observation_xml(_OBSERVED.observation),
                },
                "application/json": {"example": _OBSERVED.model_dump(mode="json")},
            },
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                XML: _TEXT,
                "text/plain": _TEXT,
                "application/json": {"schema": ActionBody.model_json_schema(ref_template="#/components/schemas/{model}")},
            },
        }
    },
)
async def agent_action(said: TakenText, dependencies: Injected) -> Response:
    """Calls the tool of the first `<ACTION>` block, like `/run_tool`. `response_text` has the text around the block.

    `mode` and `callback_url` are those of `/run_tool`: in the JSON body, or as attributes of the block. Further blocks are not called; a
    `note` says so.
    """
    return await action_answer(dependencies, said)
