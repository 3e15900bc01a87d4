"""The one table from what can go wrong to a message and an exit code."""

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

import typer
from pydantic import ValidationError

from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_failure
from toolagent.cli.words import problem_told
from toolagent.client.http import Refused, ServiceError, UnexpectedAnswer, Unreachable

__all__ = ["ExitCode", "Interrupted", "reported"]


class ExitCode(IntEnum):
    """What the shell is told."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


class Interrupted(Exception):
    """The person pressed Ctrl-C; the message says what became of the call."""


@contextmanager
def reported() -> Generator[None, None, None]:
    """Turn each expected failure into a red message on stderr and an exit code."""
    try:
        yield
    except (ParameterError, ValidationError, UnicodeEncodeError, ServiceError, OSError, Interrupted) as error:
        # A reader that went away (`| head`) is no failure to report; typer ends quietly on it.
        if isinstance(error, BrokenPipeError):
            raise
        message, code = _verdict(error)
        show_failure(message)
        raise typer.Exit(code) from error


def _verdict(error: Exception) -> tuple[str, ExitCode]:
    match error:
        case ParameterError() | UnicodeEncodeError():
            return _mistyped(error), ExitCode.USAGE
        case ValidationError():
            issues = (f"  {'.'.join(map(str, issue['loc']))}: {issue['msg']}" for issue in error.errors())
            return "\n".join(("This is not a call that can be made:", *issues)), ExitCode.USAGE
        case Unreachable():
            return _unreachable(error), ExitCode.UNREACHABLE
        case Refused():
            return _refused(error), ExitCode.FAILED
        case UnexpectedAnswer():
            return f"{error} Is this the URL of Tool Agent?", ExitCode.FAILED
        case Interrupted():
            return str(error), ExitCode.INTERRUPTED
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}.", ExitCode.FAILED
        case _:
            return str(error), ExitCode.FAILED


def _mistyped(error: ParameterError | UnicodeEncodeError) -> str:
    return str(error) if isinstance(error, ParameterError) else f"{error.object[:64]!r} holds characters that cannot be sent."


def _unreachable(error: Unreachable) -> str:
    if error.sent:
        return f"{error}\nThe service may have taken the request; `toolagent status` shows whether it is back."
    return f"{error}\nStart the service with `make up`, or name another with --url or TOOL_AGENT_URL."


def _refused(error: Refused) -> str:
    problem = error.problem
    if problem.status == 401:
        return f"{problem.status} {problem.title}: the service wants another key. Set TOOL_AGENT_API_KEY or give --api-key."
    return f"{problem.title}: {problem_told(problem) or error}"
