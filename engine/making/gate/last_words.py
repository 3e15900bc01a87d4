"""What a tool on trial wrote of its failures: an answer with status 500 seldom says why."""

import re
from pathlib import Path

from engine.runtimes.given_secrets import without_given
from toolagent.core.calls.masking import masked_text

_LOG = "stderr.log"
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)(?: \[\w+\])?(?::.*|[ \t\r]*$)", re.MULTILINE)
_ASIDE = re.compile(r"^Exception (?:ignored|in thread)\b.*(?:\nTraceback .*(?:\n[ \t].*)*\n.*)?", re.MULTILINE)
"""What Python writes of its own accord: no call failed by it."""
_MOST_READ = 16 * 1024
_LONGEST = 300


def log_size(logs: Path) -> int:
    """In bytes; 0 where there is none. Blocks."""
    try:
        return (logs / _LOG).stat().st_size
    except OSError:
        return 0


def raised_in(logs: Path, since: int) -> str:
    """The last exception of a program that is written there after so many bytes, in a line; empty where there is none.

    A log that is smaller was begun anew. Blocks.
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
