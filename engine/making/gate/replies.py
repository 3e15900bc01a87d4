"""Translates the results of calls and requests into replies for the gate."""

import json

import httpx
from pydantic import JsonValue

from engine.making.gate.subject import Came, Reply
from engine.runtimes.failures import CallFailed, RuntimeFailure, StartFailed
from toolagent.contracts.calls import ErrorType, ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.schemas import find_issues

_BAD_REQUEST = 400
_SERVER_ERROR = 500
_TOLD = 600
_ISSUES = 3


async def answered(schema: JsonSchema, output: JsonValue) -> Reply:
    """Validates the output like that of every call."""
    issues = await find_issues(schema, output) if schema else ()
    return Reply(Came.MISFIT, output, misfitting(issues)) if issues else Reply(Came.ANSWER, output)


def failed(failure: RuntimeFailure) -> Reply:
    """The message has all known details, also how the process ended."""
    details = {name: value for name, value in failure.details.items() if name not in ("outcome", "endpoint", "timeout_s")}
    seen = json.dumps(details, ensure_ascii=False)[:_TOLD] if details else ""
    return Reply(_came(failure), message=f"{failure.message} {seen}".strip())


def of_status(status: int, body: str) -> Reply:
    """The reply to a request that no call can produce."""
    if httpx.codes.is_success(status):
        return Reply(Came.ANSWER, message=f"It answered with status {status}.")
    return Reply(_of_status(status), message=f"It answered with status {status}: {body[:_TOLD]}")


def misfitting(issues: tuple[ValidationIssue, ...]) -> str:
    return "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:_ISSUES])


def _came(failure: RuntimeFailure) -> Came:
    if not isinstance(failure, CallFailed):
        if failure.error_type is ErrorType.VALIDATION_ERROR and not isinstance(failure, StartFailed):
            return Came.UNSENDABLE
        return Came.KEYLESS if "secret" in failure.details else Came.NOT_SENT
    match failure.error_type:
        case ErrorType.TIMEOUT:
            return Came.SILENCE
        case ErrorType.VALIDATION_ERROR:
            return Came.REFUSAL
        case ErrorType.OUTPUT_VALIDATION_ERROR:
            return Came.MISFIT
        case _ if failure.outcome == "unknown":
            return Came.LOST
        case _ if failure.details.get("is_error") is True:
            # MCP has no other way to refuse input.
            return Came.REFUSAL
        case _:
            status = failure.details.get("status_code")
            return _of_status(status) if isinstance(status, int) else Came.ERROR


def _of_status(status: int) -> Came:
    return Came.REFUSAL if _BAD_REQUEST <= status < _SERVER_ERROR else Came.ERROR
