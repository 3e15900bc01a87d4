"""The tool starts in the sandbox."""

import json

from engine.making.gate.subject import Subject
from engine.runtimes.failures import NotSent
from toolagent.contracts.making import CheckResult

NAME = "starts"
_TOLD = 3000


async def check(subject: Subject) -> CheckResult:
    """Raises NotSent if this host runs no tools: no change to the candidate would help."""
    try:
        await subject.trial.start()
    except NotSent as failure:
        if failure.details.get("missing") == "sandbox":
            raise
        seen = json.dumps(failure.details, ensure_ascii=False)[:_TOLD]
        return CheckResult(check=NAME, passed=False, details=f"It does not start: {failure.message} {seen}")
    return CheckResult(check=NAME, passed=True, details=f"{len(subject.entries)} started." if len(subject.entries) > 1 else "It started.")
