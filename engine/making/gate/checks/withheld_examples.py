"""Examples that its maker has never seen hold too; nothing that is said of them tells what they are."""

from collections import Counter

from engine.making.gate.subject import Came, Subject
from toolagent.contracts.making import CheckResult
from toolagent.contracts.task_specs import Example
from toolagent.core.catalog.expectations import unexpected

NAME = "withheld examples"
_OTHERWISE = "answered otherwise than expected"


async def check(subject: Subject) -> CheckResult:
    """Its details hold counts and words of ours only: a message of the tool's, or of a schema's, could quote the input."""
    if not subject.withheld:
        details = "No example was withheld, so nothing shows that it does more than what its maker was shown."
        return CheckResult(check=NAME, passed=True, applies=False, details=details)
    came = [await _came(subject, example) for example in subject.withheld]
    wrong = Counter(one for one in came if one is not None)
    if not wrong:
        return CheckResult(check=NAME, passed=True, details=f"All {len(came)} held.")
    seen = ", ".join(f"{count} {what}" for what, count in wrong.items())
    details = (
        f"{wrong.total()} of {len(came)} examples that were kept back did not hold: {seen}. What they are is not told. "
        "The tool has to do what its description says for every input, not only for the examples that were shown."
    )
    return CheckResult(check=NAME, passed=False, details=details)


async def _came(subject: Subject, example: Example) -> str | None:
    """What was wrong; None when one of the tools that take the input was right."""
    seen = "fitted the input schema of no tool"
    for entry in await subject.tools_for(example):
        reply = await subject.trial.call(entry.manifest.tool_id, example.input, withheld=True)
        if reply.came is Came.ANSWER and not any(True for _ in unexpected(example.expected_output, reply.output)):
            return None
        seen = _OTHERWISE if reply.came is Came.ANSWER else reply.came.value
    return seen
