"""Answers of the service, read into contracts, and their errors."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import httpx
from httpx_sse import EventSource, SSEError
from pydantic import ValidationError

from toolagent.contracts.calls import ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import Problem

__all__ = [
    "ContractT",
    "Refused",
    "ServiceError",
    "UnexpectedAnswer",
    "Unreachable",
    "WrongContent",
    "events_of",
    "is_away",
    "is_problem",
    "is_unanswered",
    "parsed",
    "problem_of",
    "require_success",
]

_UNAVAILABLE = 503

ContractT = TypeVar("ContractT", bound=Contract)


class ServiceError(Exception):
    """The request did not succeed.

    ServiceError
    ├── Unreachable        nothing answered, or the connection broke
    ├── Refused            the service refused, with a reason (body, route, authentication)
    ├── UnexpectedAnswer   an answer that is not of this protocol
    └── WrongContent       a file of another size or hash, or an answer that is too large or cannot be unpacked
    """


class Unreachable(ServiceError):
    """Nothing answered at `url`. `sent` says whether the request may have arrived all the same."""

    def __init__(self, url: str, reason: str, *, sent: bool) -> None:
        broke = "The connection broke before the answer came from" if sent else "Nothing answers at"
        super().__init__(f"{broke} {url} ({reason}).")
        self.url = url
        self.sent = sent


class Refused(ServiceError):
    """The service refused the request; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or problem.title or f"The service answered {problem.status}.")
        self.problem = problem


class UnexpectedAnswer(ServiceError):
    """An answer that does not come from Tool Agent."""

    def __init__(self, answer: httpx.Response) -> None:
        kind = answer.headers.get("content-type", "no content type")
        super().__init__(
            f"{answer.request.method} {answer.request.url} was answered {answer.status_code} ({kind}), which is not understood."
        )
        self.status_code = answer.status_code


class WrongContent(ServiceError):
    """The content has another size or hash, is not JSON, is too large, or cannot be unpacked."""


def is_away(error: ServiceError) -> bool:
    """Whether the service is down or cannot answer now, so that a retry may help."""
    return isinstance(error, Unreachable) or (isinstance(error, Refused) and error.problem.status == _UNAVAILABLE)


def is_unanswered(error: ServiceError) -> bool:
    """Whether the service may have accepted the request."""
    return is_away(error) and (not isinstance(error, Unreachable) or error.sent)


def is_problem(answer: httpx.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("application/problem+json")


def problem_of(answer: httpx.Response) -> Problem:
    try:
        return Problem.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnexpectedAnswer(answer) from error


def require_success(answer: httpx.Response) -> None:
    """Raises Refused, UnexpectedAnswer. Reads the body of a streamed answer that failed."""
    if answer.is_success:
        return
    answer.read()
    if is_problem(answer):
        raise Refused(problem_of(answer))
    try:
        result = ToolResult.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnexpectedAnswer(answer) from error
    kind, detail = (result.error.type.value, result.error.message) if result.error else ("error", "")
    details = result.error.details if result.error else None
    raise Refused(Problem(type=kind, title=kind, status=answer.status_code, detail=detail, details=details))


def parsed(contract: type[ContractT], answer: httpx.Response, also: tuple[int, ...] = ()) -> ContractT:
    if answer.status_code not in also or is_problem(answer):
        require_success(answer)
    try:
        return contract.model_validate_json(answer.content)
    except ValidationError as error:
        raise UnexpectedAnswer(answer) from error


def events_of(answer: httpx.Response, contracts: Mapping[str, type[ContractT]]) -> Iterator[ContractT]:
    """The server-sent events of these kinds, each read into its contract. Other kinds are skipped. Raises Refused, UnexpectedAnswer."""
    require_success(answer)
    try:
        for event in EventSource(answer).iter_sse():
            if event.event in contracts:
                yield contracts[event.event].model_validate_json(event.data)
    except (ValidationError, SSEError) as error:
        raise UnexpectedAnswer(answer) from error
