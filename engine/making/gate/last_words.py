"""Finds exceptions in the log of a tool on trial, because an answer with status 500 seldom says why."""

import re
from pathlib import Path

from engine.runtimes.given_secrets import without_given
from toolagent.core.calls.masking import masked_text

_LOG = "stderr.log"
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)(?: \[\w+\])?(?::.*|[ \t\r]*$)", re.MULTILINE)
_ASIDE = re.compile(r"^Exception (?:ignored|in thread)\b.*(?:\nTraceback .*(?:\n[ \t].*)*\n.*)?", re.MULTILINE)
"""Messages of Python itself, which no call fails by."""
_MOST_READ = 16 * 1024
_LONGEST = 300


def log_size(logs: Path) -> int:
    """The size of the log in bytes; 0 if there is none. Blocks."""
    try:
        return (logs / _LOG).stat().st_size
    except OSError:
        return 0


def raised_in(logs: Path, since: int) -> str:
    """The last exception in the log after `since` bytes, in one line; empty if there is none.

    A smaller log was begun anew. Blocks.
    """
    size = log_size(logs)
    try:
        with (logs / _LOG).open("rb") as file:
            file.seek(max(since if since <= size else 0, size - _MOST_READ))
            text = file.read(_MOST_READ).decode(errors="replace")
    except OSError:
        return ""
    found = _RAISED.findall(_ASIDE.sub("", text))
    return masked_text(without_given(found[-1]))[:_LONGEST] if found else ""
