"""The examples that its maker was given hold."""

from engine.making.gate.subject import Came, Reply, Subject
from engine.making.gate.wording import listed, quoted
from toolagent.contracts.making import CheckResult
from toolagent.contracts.task_specs import Example
from toolagent.core.catalog.expectations import unexpected

NAME = "given examples"
_PLACES = 5


async def check(subject: Subject) -> CheckResult:
    """What is expected is a part of what comes. Where there are several tools, one of those that take the input has to be right."""
    if not subject.given:
        return CheckResult(check=NAME, passed=True, applies=False, details="No example was given.")
    faults = [fault for example in subject.given if (fault := await _fault(subject, example)) is not None]
    details = f"{len(subject.given) - len(faults)} of {len(subject.given)} held."
    return CheckResult(check=NAME, passed=not faults, details=f"{details}\n{listed(faults, subject.limits.told)}".strip())


async def _fault(subject: Subject, example: Example) -> str | None:
    said: list[str] = []
    for entry in await subject.tools_for(example):
        reply = await subject.trial.call(entry.manifest.tool_id, example.input)
        wrong = _wrong(example, reply)
        if wrong is None:
            return None
        said.append(wrong if len(subject.entries) == 1 else f"{entry.manifest.tool_id}: {wrong}")
    return f"With input {quoted(example.input)}: {'; '.join(said) or 'no tool has an input schema that it fits.'}"


def _wrong(example: Example, reply: Reply) -> str | None:
    if reply.came is not Came.ANSWER:
        return f"it {reply.came}: {reply.message}"
    places = list(unexpected(example.expected_output, reply.output))
    told = "; ".join(f"at {path} {quoted(expected)} was expected and {quoted(came)} came" for path, expected, came in places[:_PLACES])
    return told or None
