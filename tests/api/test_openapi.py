"""The OpenAPI document, compared as a whole."""

import asyncio
import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import pytest
from fastapi import Depends
from fastapi.routing import APIRoute
from pydantic import BaseModel, JsonValue
from starlette.responses import Response

from api.app import create_app
from api.documentation import Documented
from api.errors import REASON_STATUS, STATUS
from api.forms import FORMS
from api.problems import ProblemKind
from api.reading.strict_json import StrictRoute
from api.routes import ROUTERS
from tests.api.conftest import House
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.http import Problem

SNAPSHOT = Path(__file__).parent / "openapi.json"
REMEDY = "If the change is meant: `.venv/bin/pytest tests/api --update-snapshots` writes the document; review the difference."
_REQUEST = ("parameters", "requestBody")
_PATIENCE_S = 30


def operations(document: dict[str, dict[str, dict[str, dict[str, object]]]]) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}


async def test_the_document_is_the_one_that_was_agreed_on(house: House, request: pytest.FixtureRequest) -> None:
    document = create_app(house.dependencies).openapi()
    if request.config.getoption("--update-snapshots", default=False):
        SNAPSHOT.write_text(json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    assert document == json.loads(SNAPSHOT.read_text()), REMEDY


def test_what_may_be_short_waits_for_no_dependencies() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, StrictRoute)]
    assert {route.path for route in routes if route.is_plain} == {"/run_tool", "/chat", "/groups/{group_id}/sessions/{session_id}/run"}


class Body(BaseModel):
    a: int


def somebody() -> str:
    return "x"


async def plain(body: Body) -> Response:
    return Response(str(body.a))


async def untold(body: Body):
    return body


def in_a_thread(body: Body) -> Response:
    return Response(str(body.a))


async def injected(body: Body, who: Annotated[str, Depends(somebody)]) -> Response:
    return Response(who * body.a)


@pytest.mark.parametrize(("endpoint", "is_plain"), [(plain, True), (untold, False), (in_a_thread, False), (injected, False)])
def test_only_what_needs_nothing_of_fastapi_is_read_directly(endpoint: Callable[..., object], *, is_plain: bool) -> None:
    assert StrictRoute("/x", endpoint, methods=["POST"]).is_plain is is_plain
    assert not StrictRoute("/x", endpoint, methods=["POST"], dependencies=[Depends(somebody)]).is_plain


def patterns_in(part: JsonValue, schemas: dict[str, JsonValue], seen: frozenset[str] = frozenset()) -> set[str]:
    """All patterns in this part of the document."""
    match part:
        case {"$ref": str(reference)} if (name := reference.rpartition("/")[2]) not in seen:
            return patterns_in(schemas[name], schemas, seen | {name})
        case dict():
            own = {value for name, value in part.items() if name == "pattern" and isinstance(value, str)}
            named = part.get("patternProperties")
            own |= {*named} if isinstance(named, dict) else set[str]()
            return own.union(*(patterns_in(inner, schemas, seen) for inner in part.values()))
        case list():
            return set[str]().union(*(patterns_in(inner, schemas, seen) for inner in part))
        case _:
            return set()


def test_every_pattern_of_a_request_is_put_in_words() -> None:
    document = json.loads(SNAPSHOT.read_text())
    asked = [operation.get(part, {}) for path in document["paths"].values() for operation in path.values() for part in _REQUEST]
    found = patterns_in(asked, document["components"]["schemas"])
    # What an address must be is told by its own check.
    assert {pattern for pattern in found if "https?" not in pattern} == FORMS.keys()


async def test_the_document_is_served_and_made_once_beside_the_event_loop(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    makers, make = list[int](), Documented.openapi

    def noted(app: Documented) -> dict[str, object]:
        makers.append(threading.get_ident())
        return make(app)

    monkeypatch.setattr(Documented, "openapi", noted)
    first, second = [(await house.http.get("/openapi.json")).json() for _ in range(2)]
    assert first == second
    assert first == json.loads(SNAPSHOT.read_text()), REMEDY
    assert len(makers) == 1
    assert makers != [threading.get_ident()]


async def test_whoever_asks_first_and_goes_takes_nothing_from_who_asks_next(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end, makers = threading.Event(), threading.Event(), list[int]()

    def slow(_: Documented) -> dict[str, object]:
        makers.append(threading.get_ident())
        begun.set()
        may_end.wait(_PATIENCE_S)
        return {"made": len(makers)}

    monkeypatch.setattr(Documented, "openapi", slow)
    first = asyncio.create_task(house.http.get("/openapi.json"))
    await asyncio.to_thread(begun.wait, _PATIENCE_S)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    may_end.set()
    assert ((await house.http.get("/openapi.json")).json(), len(makers)) == ({"made": 1}, 1)


def test_every_route_is_in_the_document() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    served = {(method, route.path) for route in routes for method in sorted(route.methods or ())}
    assert served == operations(json.loads(SNAPSHOT.read_text()))


def test_every_route_has_a_summary_and_a_tag() -> None:
    document = json.loads(SNAPSHOT.read_text())
    tags = {tag["name"] for tag in document["tags"]}
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            assert set(operation["tags"]) <= tags
            assert "default" in operation["responses"]


def test_everything_that_can_go_wrong_has_one_status() -> None:
    assert STATUS.keys() == {*ErrorType, *ProblemKind}
    assert {error_type for error_type, _ in REASON_STATUS} <= set(ErrorType)


def test_every_way_a_call_can_end_has_an_example_that_is_a_result() -> None:
    responses = json.loads(SNAPSHOT.read_text())["paths"]["/run_tool"]["post"]["responses"]
    seen: set[str] = set()
    for status, response in responses.items():
        for name, example in response["content"].get("application/json", {}).get("examples", {}).items():
            seen.add(name)
            assert ToolResult.model_validate(example["value"]).status == ("success" if status == "200" else "error")
    assert seen == {"success", *ErrorType, *(reason for _, reason in REASON_STATUS)}


def test_every_example_of_a_problem_says_the_status_it_stands_under() -> None:
    document = json.loads(SNAPSHOT.read_text())
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                for name, example in response.get("content", {}).get("application/problem+json", {}).get("examples", {}).items():
                    problem = Problem.model_validate(example["value"])
                    assert (problem.type, problem.status) == (name, HTTPStatus(int(status)))
