"""Validates the input of workflows and signals, which is plain JSON.

An invalid typed argument, or a wrong number of arguments, would fail the workflow task for ever.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import Contract

C = TypeVar("C", bound=Contract)

_LISTED = 5
_LONGEST = 200


def input_of(contract: type[C], given: JsonValue, surplus: Sequence[JsonValue]) -> C:
    """Raises ApplicationError, which fails the workflow at once."""
    name = contract.__name__
    if surplus:
        raise malformed(f"One input is taken, a {name}; there are {len(surplus)} more.")
    try:
        return contract.model_validate(given)
    except ValidationError as error:
        raise malformed(f"The input is not a {name}: {said_of(error)}") from error


def require_host(host: str) -> None:
    """Raises ApplicationError for an invalid name: the server refuses some names of queues, and with them the workflow task."""
    if len(host) > _LONGEST or not host.isprintable():
        raise malformed(f"host: {host[:50]!r} is no name of a host.")


def told_of(contract: type[C], given: Sequence[JsonValue]) -> C | None:
    """The content of a signal; None, and a warning in the log, if it is invalid."""
    try:
        return input_of(contract, given[0] if given else None, given[1:])
    except ApplicationError as error:
        workflow.logger.warning("signal_dropped: %s", error.message)
        return None


def said_of(error: ValidationError) -> str:
    """The first errors in short: there may be as many as the input has values."""
    found = error.errors(include_url=False, include_input=False)
    listed = (f"{'.'.join(map(str, one['loc']))[:_LONGEST] or 'input'}: {one['msg'][:_LONGEST]}" for one in found[:_LISTED])
    return "; ".join(listed) + (f" (and {len(found) - _LISTED} more)" if len(found) > _LISTED else "")


def malformed(message: str) -> ApplicationError:
    """The error that fails a workflow, or refuses an update, because of wrong input."""
    return ApplicationError(message, type=ErrorType.VALIDATION_ERROR.value, non_retryable=True)
