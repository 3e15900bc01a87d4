"""What a tool on trial wrote of its failures: an answer with status 500 seldom says why."""

import re
from pathlib import Path

from engine.runtimes.given_secrets import without_given
from toolagent.core.calls.masking import masked_text

_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*", re.MULTILINE)
_MOST_READ = 16 * 1024
_LONGEST = 300


def raised_in(logs: Path) -> str:
    """The last exception of a program that is written there, in a line; empty where there is none. Blocks."""
    try:
        with (logs / "stderr.log").open("rb") as file:
            file.seek(max(0, (logs / "stderr.log").stat().st_size - _MOST_READ))
            text = file.read(_MOST_READ).decode(errors="replace")
    except OSError:
        return ""
    found = _RAISED.findall(text)
    return masked_text(without_given(found[-1]))[:_LONGEST] if found else ""
