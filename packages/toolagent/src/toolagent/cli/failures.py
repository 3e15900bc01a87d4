"""Maps each failure to a message and an exit code."""

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

import typer
from pydantic import ValidationError

from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_failure
from toolagent.cli.words import problem_told
from toolagent.client.http import Refused, ServiceError, UnexpectedAnswer, Unreachable

__all__ = ["ExitCode", "Interrupted", "fail_if", "reported"]


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


class Interrupted(Exception):
    """Ctrl-C was pressed. The message says what happens to the call."""


def fail_if(failed: object, message: str = "") -> None:
    """Exit with code 1 if something failed, with the message on stderr."""
    if failed:
        if message:
            show_failure(message)
        raise typer.Exit(ExitCode.FAILED)


@contextmanager
def reported() -> Generator[None, None, None]:
    """Turn each expected failure into a red message on stderr and an exit code."""
    try:
        yield
    except (ParameterError, ValidationError, UnicodeEncodeError, ServiceError, OSError, Interrupted) as error:
        # A reader that left (`| head`) is no failure.
        if isinstance(error, BrokenPipeError):
            raise
        message, code = _verdict(error)
        show_failure(message)
        raise typer.Exit(code) from error


def _verdict(error: Exception) -> tuple[str, ExitCode]:
    match error:
        case ParameterError():
            return str(error), ExitCode.USAGE
        case UnicodeEncodeError():
            return f"{error.object[:64]!r} holds characters that cannot be sent.", ExitCode.USAGE
        case ValidationError():
            issues = (f"  {'.'.join(map(str, issue['loc']))}: {issue['msg']}" for issue in error.errors())
            return "\n".join(("The call is not valid:", *issues)), ExitCode.USAGE
        case Unreachable():
            return _unreachable(error), ExitCode.UNREACHABLE
        case Refused():
            return _refused(error), ExitCode.FAILED
        case UnexpectedAnswer():
            return f"{error} Is this the URL of Tool Agent?", ExitCode.FAILED
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}.", ExitCode.FAILED
        case _:
            return str(error), ExitCode.INTERRUPTED if isinstance(error, Interrupted) else ExitCode.FAILED


def _unreachable(error: Unreachable) -> str:
    if error.sent:
        return f"{error}\nThe service may have taken the request; `toolagent status` shows whether it is back."
    return f"{error}\nStart the service with `make up`, or name another with --url or TOOL_AGENT_URL."


def _refused(error: Refused) -> str:
    problem = error.problem
    if problem.status == 401:
        return f"{problem.status} {problem.title}: the service wants another key. Set TOOL_AGENT_API_KEY or give --api-key."
    return f"{problem.title}: {problem_told(problem) or error}"
