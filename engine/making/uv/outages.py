"""Recognises outages of our own services during a build or trial, which the maker cannot repair, and which may end soon."""

import re
from collections.abc import Iterator

from engine.making.failures import LockFailed
from engine.runtimes.docker_engine.engine import EngineFailure, EngineRefused
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.process.box import LevelUnavailable
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from toolagent.contracts.calls import ErrorType
from toolagent.core.failures import StoreUnavailableError

_AWAY = re.compile(
    r"error sending request for url|HTTP status server error \(5\d\d|HTTP status client error \(429|No space left on device \(os error 28\)"
    r"|^npm (?:error|ERR!) code (?:ECONN\w+|ENOTFOUND|EAI_AGAIN|E\w*TIMED?OUT|E5\d\d|E429|ENOSPC)\s*$",
    re.MULTILINE,
)
"""Messages of uv and npm if an index does not answer or is overloaded, or our disk is full."""


class Outage(Exception):
    """The message names what was away. The step should be tried again, a few times."""


def is_outage(failure: BaseException) -> bool:
    """Whether a service of ours is the cause: the engine, the sandbox, the content store, the package index."""
    return any(map(_is_ours, _causes(failure)))


def _causes(failure: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    cause: BaseException | None = failure
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__


def _is_ours(failure: BaseException) -> bool:
    match failure:
        case EngineRefused():  # it answers: its input is at fault
            return False
        case EngineFailure() | StoreUnavailableError() | IndexesUnknown() | LevelUnavailable():
            return True
        case ScriptFailure(kind=ScriptErrorKind.UNAVAILABLE):
            return True
        case ScriptFailure(told=told) | LockFailed(told=told):
            return bool(_AWAY.search(told))
        case RuntimeFailure(error_type=ErrorType.UNAVAILABLE, __cause__=OSError() as error):
            return not isinstance(error, TimeoutError)
        case _:
            return False
