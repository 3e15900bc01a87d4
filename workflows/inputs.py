"""What anybody may start a workflow with, or tell it: plain JSON, which becomes a contract here.

A typed argument that does not fit would fail the workflow's task for ever, and so would one too many or too few.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import Contract
from toolagent.contracts.making import Guidance

C = TypeVar("C", bound=Contract)

_LISTED = 5
_LONGEST = 200


def input_of(contract: type[C], given: JsonValue, surplus: Sequence[JsonValue]) -> C:
    """Raises ApplicationError, which fails the workflow at once."""
    name = contract.__name__
    if surplus:
        raise _malformed(f"One input is taken, a {name}; there are {len(surplus)} more.")
    try:
        return contract.model_validate(given)
    except ValidationError as error:
        raise _malformed(f"The input is not a {name}: {said_of(error)}") from error


def require_host(host: str) -> None:
    """Raises ApplicationError for what is no name of a host: the server refuses some queues' names, and with them the workflow's task."""
    if len(host) > _LONGEST or not host.isprintable():
        raise _malformed(f"host: {host[:50]!r} is no name of a host.")


def guidance_of(given: Sequence[JsonValue]) -> Guidance | None:
    """What is said to an agent; see `told_of`."""
    return told_of(Guidance, given)


def told_of(contract: type[C], given: Sequence[JsonValue]) -> C | None:
    """What a signal says; None, with a warning in the log, when that is nothing that can be told."""
    try:
        return input_of(contract, given[0] if given else None, given[1:])
    except ApplicationError as error:
        workflow.logger.warning("signal_dropped: %s", error.message)
        return None


def said_of(error: ValidationError) -> str:
    """In short: there may be as many errors as the input has values."""
    found = error.errors(include_url=False, include_input=False)
    listed = (f"{'.'.join(map(str, one['loc']))[:_LONGEST] or 'input'}: {one['msg'][:_LONGEST]}" for one in found[:_LISTED])
    return "; ".join(listed) + (f" (and {len(found) - _LISTED} more)" if len(found) > _LISTED else "")


def _malformed(message: str) -> ApplicationError:
    return ApplicationError(message, type=ErrorType.VALIDATION_ERROR.value, non_retryable=True)
