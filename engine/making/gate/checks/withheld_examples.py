"""Examples that the tool's maker has never seen hold too; the details do not reveal them."""

from collections import Counter

from engine.making.gate.subject import Came, Subject, not_asked
from toolagent.contracts.making import CheckResult
from toolagent.contracts.task_specs import Example

NAME = "withheld examples"
_OTHERWISE = "answered otherwise than expected"


async def check(subject: Subject) -> CheckResult:
    """The details are counts and our own words only, because a message of the tool or a schema could quote the input."""
    if not subject.withheld:
        return not_asked(NAME, "No example was withheld, so nothing shows that it does more than what its maker was shown.")
    came = [await _came(subject, example) for example in subject.withheld]
    wrong = Counter(filter(None, came))
    if not wrong:
        return CheckResult(check=NAME, passed=True, details=f"All {len(came)} held.")
    seen = ", ".join(f"{count} {what}" for what, count in wrong.items())
    details = (
        f"{wrong.total()} of {len(came)} examples that were kept back did not hold: {seen}. What they are is not told. "
        "The tool has to do what its description says for every input, not only for the examples that were shown."
    )
    return CheckResult(check=NAME, passed=False, details=details)


async def _came(subject: Subject, example: Example) -> str:
    """What was wrong; empty if one of the tools that take the input was right."""
    seen = "fitted the input schema of no tool"
    for entry in await subject.tools_for(example):
        reply = await subject.trial.call(entry.manifest.tool_id, example.input, withheld=True)
        if reply.holds(example):
            return ""
        seen = _OTHERWISE if reply.came is Came.ANSWER else reply.came.value
    return seen
