"""The windows of the IM client, for agents that write in them unasked."""

from fastapi import APIRouter

from api.chats import used_im_function
from api.documentation import JSON_BODY, problem_responses
from api.json_object import JsonObject
from api.making import Key
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.chat_bodies import ImUseBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.im import ImFunctionListing

router = APIRouter(tags=["chats"], route_class=StrictRoute)


@router.get("/im/functions", summary="What an agent may do with the IM windows", responses=problem_responses())
async def list_im_functions(dependencies: Injected) -> ImFunctionListing:
    """The functions with the schemas of their arguments, for a model. None if this process has no connection to an IM server."""
    return ImFunctionListing(functions=dependencies.im_functions.offers if dependencies.im_functions else ())


@router.post(
    "/im/functions/{name}",
    summary="List IM windows, read one, or say something in one",
    responses=problem_responses(*JSON_BODY, ProblemKind.IDEMPOTENCY_CONFLICT, ErrorType.UNAVAILABLE),
)
async def use_im_function(name: str, body: ImUseBody, dependencies: Injected, idempotency_key: Key = None) -> JsonObject:
    """The answer of the function. A wrong name or argument gives 422 with a message for the model."""
    return await used_im_function(dependencies, name, body.arguments, idempotency_key)
