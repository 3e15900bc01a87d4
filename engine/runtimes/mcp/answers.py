"""Turns the answer of an MCP tool into an output, or a failure of the call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, PARSE_ERROR, REQUEST_TIMEOUT, CallToolResult, ErrorData, TextContent
from pydantic import JsonValue, ValidationError

from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure, no_answer
from engine.runtimes.mcp.codes import BROKEN, DECLINED, FORGOTTEN, LOGIN, NOT_SENT, REFUSED, STRANGE, TOO_LARGE
from engine.runtimes.secrecy import masked, masked_text
from toolagent.contracts.calls import ErrorType
from toolagent.core.texts import shortened, well_formed_value
from toolagent_service.calls.mcp_contents import Block, kept_beside, layout_of, output_of

_TOLD_CHARACTERS = 4096
_TOLD_FAULTS = 3
_QUOTE = " [type="
"""Where the SDK's errors begin to quote the answer. They cut a long secret in its middle, where no mask finds it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`content` is the answer in the server's form, for callers that speak MCP: see `toolagent_service.calls.mcp_contents`."""

    output: JsonValue
    content: JsonValue


def answer_of(result: CallToolResult, max_bytes: int, secrets: Sequence[str] = ()) -> Answer:
    """The output is `structuredContent` if there is some, else an object: `text` joins all texts, `content` holds the other blocks.

    Raises CallFailed if the tool reports a failure or the answer is too large.
    """
    if result.is_error:
        text = masked_text("\n".join(block.text for block in result.content if isinstance(block, TextContent)), secrets)
        raise CallFailed(
            ErrorType.EXECUTION_ERROR,
            shortened(text, _TOLD_CHARACTERS) or "The tool reports a failure without a reason.",
            {"is_error": True},
        )
    told: list[JsonValue] = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content]
    blocks = cast("list[Block]", well_formed_value(masked(told, secrets)))
    if result.structured_content is None:
        return Answer(_bounded(output_of(blocks), max_bytes), {"content": layout_of(blocks)})
    structured = _bounded(cast("JsonValue", result.structured_content), max_bytes)
    output = well_formed_value(masked(structured, secrets))
    return Answer(output, {"structured": True, "content": kept_beside(blocks, output)})


def _bounded(output: JsonValue, max_bytes: int) -> JsonValue:
    try:
        written = json.dumps(output, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        message = "The tool's answer holds a number that is not finite, or too large for a JSON number of double precision."
        raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, message) from error
    if (size := len(written.encode(errors="replace"))) > max_bytes:
        message = f"The tool's answer is {size} bytes of JSON; at most {max_bytes} are taken (TOOL_AGENT_MAX_RESULT_BYTES)."
        raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, message, {"size": size, "limit": max_bytes})
    return output


def failure_of(error: MCPError, secrets: Sequence[str] = ()) -> RuntimeFailure:
    """The failure of a call that got an error."""
    message, data = shortened(message_of(error, secrets), _TOLD_CHARACTERS), data_of(error, secrets)
    details: dict[str, JsonValue] = {"code": error.code, **({} if data is None else {"data": data})}
    match error.code:
        case _ if error.code in (NOT_SENT, FORGOTTEN):
            return NotSent(ErrorType.UNAVAILABLE, message)
        case _ if error.code in (REFUSED, LOGIN):
            return _refusal_of(error, message)
        case _ if error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT, BROKEN):
            return no_answer(message if error.code == BROKEN else "The connection to the server ended before it had answered.")
        case _ if error.code == DECLINED:
            return CallFailed(ErrorType.EXECUTION_ERROR, message, {"reason": "question_declined"})
        case _ if error.code == STRANGE:
            return CallFailed(ErrorType.EXECUTION_ERROR, message)
        case _ if error.code in (TOO_LARGE, PARSE_ERROR):
            return CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, message, details)
        case _ if error.code == INVALID_PARAMS:
            return CallFailed(ErrorType.VALIDATION_ERROR, message, details)
        case _:
            return CallFailed(ErrorType.EXECUTION_ERROR, f"The server answered with the error {error.code}: {message}", details)


def strange_result(error: ValidationError) -> CallFailed:
    """The failure of a call whose answer is no result of a tool."""
    told = shortened(told_of(error), _TOLD_CHARACTERS)
    return CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, f"The server's answer is no result of a tool: {told}")


def told_of(error: Exception) -> str:
    """What is wrong with an answer, and where. Without its values: a part of a secret would not be masked."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:_TOLD_FAULTS]
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults)


def message_of(error: MCPError, secrets: Sequence[str]) -> str:
    """The message without `secrets`, and without what the SDK quotes of an answer that it cannot read."""
    return masked_text(error.message.partition(_QUOTE)[0] if error.code == PARSE_ERROR else error.message, secrets)


def _refusal_of(error: MCPError, message: str) -> NotSent:
    if error.code == REFUSED:
        return NotSent(ErrorType.SECURITY_ERROR, message)
    data = cast("JsonValue", error.error.data)
    return NotSent(ErrorType.DEPENDENCY_ERROR, message, data if isinstance(data, dict) else {})


def error_of(refusal: NotSent) -> ErrorData:
    """The error that `failure_of` turns into this refusal again."""
    match refusal.error_type:
        case ErrorType.SECURITY_ERROR:
            return ErrorData(code=REFUSED, message=refusal.message)
        case ErrorType.DEPENDENCY_ERROR if refusal.details.get("missing") == "login":
            return ErrorData(code=LOGIN, message=refusal.message, data=refusal.details)
        case _:
            return ErrorData(code=NOT_SENT, message=refusal.message)


def data_of(error: MCPError, secrets: Sequence[str]) -> JsonValue:
    """The data of an error, without `secrets`; None if it is too large."""
    told = json.dumps(error.error.data)
    return masked(json.loads(told), secrets) if len(told) <= _TOLD_CHARACTERS else None
