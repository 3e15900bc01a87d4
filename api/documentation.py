"""Descriptions and examples of the OpenAPI document that do not follow from types."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from pydantic import JsonValue

from api.errors import REASON_STATUS, STATUS, status_of
from api.json_object import JsonObject
from api.problems import MEDIA_TYPE, Kind, ProblemKind
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import Problem
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, KEY_CONFLICT, QUARANTINED, TOO_LARGE, failed, succeeded

Responses = dict[int | str, dict[str, Any]]
"""The type of FastAPI's parameter `responses`."""

DESCRIPTION = """Calls tools durably. Every way of calling is the same workflow on Temporal: a client that goes away loses nothing,
`GET /tasks/{call id}` has the result.

Once a body parses, every answer of a call is a `ToolResult`, whatever its HTTP status. Errors of body, route and authentication
are problem documents (`application/problem+json`, RFC 9457); `type` names the problem for a program.
"""

TAGS = [
    {"name": "calls", "description": "Calling tools."},
    {"name": "tools", "description": "Finding, starting and stopping tools."},
    {"name": "groups", "description": "Tools that are used together, and sessions of them."},
    {"name": "making", "description": "Having tools made, repaired and taken back."},
    {"name": "chats", "description": "Conversations with an agent that knows the tools, and has them made."},
    {"name": "tasks", "description": "Following and cancelling calls, batches, and tasks that make or repair tools."},
    {"name": "files", "description": "Files for tools whose parameters have `format: file-path`."},
    {"name": "service", "description": "The service itself."},
]

JSON_BODY = (
    ProblemKind.MALFORMED_JSON,
    ProblemKind.INVALID_REQUEST,
    ProblemKind.BODY_TOO_LARGE,
    ProblemKind.UNSUPPORTED_MEDIA_TYPE,
)
"""Problems of a request with a JSON body."""

_PROBLEM = {"schema": {"$ref": "#/components/schemas/Problem"}}
_AT = datetime(2026, 3, 26, 10, 30, tzinfo=UTC)
_CALL_ID = "call-5f0c8e0a7d3b4c4f9c0f2d1f6a3b7e21"

SUCCESS = succeeded(
    _CALL_ID,
    "image_compress_api",
    {"compressed_size": 256000, "compression_ratio": 0.25},
    _AT,
    execution_time=0.31,
    metadata={"version": "1.0.0", "fast": False},
)

_CALL_MESSAGES: Mapping[ErrorType, str] = {
    ErrorType.TOOL_NOT_FOUND: "There is no tool 'image_sticher'. Did you mean image_stitcher?",
    ErrorType.VALIDATION_ERROR: "The parameters do not fit the tool's input schema: $.quality: 101 is greater than the maximum of 100",
    ErrorType.PERMISSION_DENIED: "The tool may only run when a person has confirmed the call.",
    ErrorType.SECURITY_ERROR: "The address 169.254.169.254 is not one that tools may reach.",
    ErrorType.BUDGET_EXCEEDED: "The call would exceed this month's budget.",
    ErrorType.REJECTED: "The call is not taken now; ask again later.",
    ErrorType.CANCELLED: "The call was cancelled.",
    ErrorType.TIMEOUT: "The tool did not answer within 30 s.",
    ErrorType.EXECUTION_ERROR: "The tool answered 500.",
    ErrorType.DEPENDENCY_ERROR: "The tool's environment could not be built.",
    ErrorType.OUTPUT_VALIDATION_ERROR: "The tool ran, but its output does not fit its output schema.",
    ErrorType.EXECUTOR_NOT_FOUND: "Nothing here can run sources of type docker.",
    ErrorType.UNAVAILABLE: "No worker took the call from queue 'default' within 600 s.",
}
_PROBLEM_MESSAGES: Mapping[ProblemKind, str] = {
    ProblemKind.MALFORMED_JSON: "The body is not JSON: trailing comma at line 1 column 22.",
    ProblemKind.MALFORMED_BODY: "Missing boundary in multipart.",
    ProblemKind.INVALID_REQUEST: "The request is not of the right form: tool: There is no such field.",
    ProblemKind.BODY_TOO_LARGE: "A file may have at most 67108864 bytes (TOOL_AGENT_MAX_FILE_BYTES).",
    ProblemKind.UNSUPPORTED_MEDIA_TYPE: "The Content-Type must be application/json; it is 'text/plain'.",
    ProblemKind.HOST_NOT_FOUND: "There is no host 'host-7'; GET /hosts lists them.",
    ProblemKind.TABLE_NOT_FOUND: "There is no external table 'shop'; GET /external_tools lists them.",
    ProblemKind.TABLE_EXISTS: "There is a table 'shop' already. Refresh it, remove it first, or choose another source.",
    ProblemKind.SERVER_NOT_FOUND: "There is no MCP server 'time'; GET /mcp_servers lists them.",
    ProblemKind.SERVER_EXISTS: "There is an MCP server, or a group, 'time' already. Refresh it, remove it first, or choose another name.",
    ProblemKind.SERVER_NOT_REACHED: "The MCP server of 'time' did not answer `initialize` within 30 s.",
    ProblemKind.GROUP_NOT_FOUND: "There is no group 'runcomfy'. Did you mean runcomfy_lifecycle?",
    ProblemKind.SESSION_NOT_FOUND: "Group 'runcomfy_lifecycle' has no session 'session-5f0c8e0a7d3b4c4f'.",
    ProblemKind.SESSION_OVER: "Session session-5f0c8e0a7d3b4c4f takes no runs: it is stopping. Open another one.",
    ProblemKind.NO_LIFECYCLE: "Group 'image_pipeline' has no lifecycle: call its tools one by one, as its `usage_order` says.",
    ProblemKind.TOO_MANY_SESSIONS: "3 sessions of this group live already. Stop one, or come again.",
    ProblemKind.CHAT_NOT_FOUND: "There is no chat 'user_A_window_1'; GET /chats lists them, POST /chat opens one.",
    ProblemKind.TASK_NOT_FOUND: "There is no task 'call-00000000'.",
    ProblemKind.TASK_ENDED: "Task 'create_a1b2c3d4' has ended (completed) and hears nothing any more; make a new one.",
    ProblemKind.TOO_MANY_MESSAGES: "50 messages were said to task 'create_a1b2c3d4' already, and it hears no more.",
    ProblemKind.IDEMPOTENCY_CONFLICT: "This key was used for another request. Choose a new one.",
    ProblemKind.NO_EARLIER_VERSION: "No version of 'word_counter' that can be called was active before 1.0.0.",
    ProblemKind.NOT_REPAIRABLE: "The tool 'echo' is a part of this service. Report the error to its operator.",
    ProblemKind.REPAIR_RUNNING: "'word_counter' is being repaired already, by repair_a1b2c3d4.",
    ProblemKind.FILE_NOT_FOUND: "There is no file 'file_00000000000000000000000000000000'.",
    ProblemKind.RANGE_NOT_SATISFIABLE: "The range 'bytes=99-' is beyond the end of the file, which has 10 bytes.",
}
_ERRORS: Mapping[Kind, JsonValue] = {
    ProblemKind.INVALID_REQUEST: [{"field": "tool", "message": "There is no such field."}],
    ProblemKind.MALFORMED_JSON: [{"field": "body", "message": "trailing comma at line 1 column 22"}],
}
_REASONS = {
    TOO_LARGE: "The parameters are 1050000 bytes of JSON; at most 1048576 are taken. POST /files takes files.",
    IDEMPOTENCY_CONFLICT: KEY_CONFLICT,
    QUARANTINED: "Version 1.0.0 of tool 'image_compress_api' is not asked this any more: its process ended each time.",
}
_ISSUE = ValidationIssue(path="$.quality", message="101 is greater than the maximum of 100", keyword="maximum")


class Documented(FastAPI):
    """Adds the schema of problems, which no handler returns, to the document."""

    def openapi(self) -> dict[str, object]:
        document: dict[str, dict[str, JsonObject]] = super().openapi()
        schemas = document["components"]["schemas"]
        if "Problem" not in schemas:
            problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= {**problem.pop("$defs"), "Problem": problem}
        return {**document}


def _described(description: str, content: Mapping[str, object]) -> dict[str, object]:
    return {"description": description, "content": content}


def _problem_example(kind: Kind) -> JsonValue:
    title = kind.value.replace("_", " ").capitalize()
    detail = _CALL_MESSAGES[kind] if isinstance(kind, ErrorType) else _PROBLEM_MESSAGES[kind]
    example: JsonObject = {"type": kind.value, "title": title, "status": STATUS[kind].value, "detail": detail}
    return example | ({"errors": _ERRORS[kind]} if kind in _ERRORS else {})


def problem_responses(*kinds: Kind) -> Responses:
    """The problems of a route, and in `default` those of all routes (authentication, host, internal errors)."""
    examples: dict[int, JsonObject] = {}
    for kind in kinds:
        examples.setdefault(STATUS[kind].value, {})[kind.value] = {"value": _problem_example(kind)}
    return {"default": _described("Any other refusal.", {MEDIA_TYPE: _PROBLEM})} | {
        status: _described(HTTPStatus(status).phrase, {MEDIA_TYPE: _PROBLEM | {"examples": found}}) for status, found in examples.items()
    }


UNAVAILABLE = problem_responses(ErrorType.UNAVAILABLE)
ONE_TOOL = problem_responses(ErrorType.TOOL_NOT_FOUND, ErrorType.UNAVAILABLE)


def answer_of(description: str, example: Contract | JsonValue, model: object = None) -> dict[str, object]:
    """One answer of a route with an example in JSON, and with its `model` if FastAPI does not know it."""
    shown = example.model_dump(mode="json") if isinstance(example, Contract) else example
    described = _described(description, {"application/json": {"example": shown}})
    return described if model is None else described | {"model": model}


def call_responses(shape: type[Contract], success: Contract, example: Callable[[ToolResult], Contract], *kinds: Kind) -> Responses:
    """All answers to a call, with examples that `example` makes of results, and the problems `kinds` of its body."""
    endings: dict[int, JsonObject] = {200: {"success": {"value": success.model_dump(mode="json")}}}
    for error_type, reason in [*((error_type, None) for error_type in ErrorType), *REASON_STATUS]:
        result = _result_example(error_type, reason)
        endings.setdefault(status_of(result).value, {})[reason or error_type.value] = {"value": example(result).model_dump(mode="json")}
    responses = problem_responses(*kinds)
    for status, examples in endings.items():
        problem: dict[str, object] = responses.get(status, {}).get("content", {})
        content = {"application/json": {"examples": examples}} | problem
        responses[status] = _described(HTTPStatus(status).phrase, content) | {"model": shape}
    return responses


def _result_example(error_type: ErrorType, reason: str | None) -> ToolResult:
    message = _REASONS[reason] if reason else _CALL_MESSAGES[error_type]
    issues = (_ISSUE,) if error_type is ErrorType.VALIDATION_ERROR and reason is None else ()
    error = ToolError(type=error_type, message=message, details={"reason": reason} if reason else None)
    return failed(_CALL_ID, "image_compress_api", error, _AT, validation_errors=issues)
