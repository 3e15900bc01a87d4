"""The examples that the tool's maker has seen hold."""

from itertools import islice

from engine.making.gate.subject import Came, Reply, Subject, not_asked
from engine.making.gate.wording import listed, quoted
from toolagent.contracts.making import CheckResult
from toolagent.contracts.task_specs import Example
from toolagent.core.catalog.expectations import unexpected

NAME = "given examples"
_PLACES = 5


async def check(subject: Subject) -> CheckResult:
    """The output contains the expected output. If several tools take the input, one of them has to be right."""
    if not subject.given:
        return not_asked(NAME, "No example was given.")
    faults = [fault for example in subject.given if (fault := await _fault(subject, example))]
    details = f"{len(subject.given) - len(faults)} of {len(subject.given)} held."
    return CheckResult(check=NAME, passed=not faults, details=f"{details}\n{listed(faults, subject.limits.told)}".strip())


async def _fault(subject: Subject, example: Example) -> str:
    said: list[str] = []
    for entry in await subject.tools_for(example):
        wrong = _wrong(example, await subject.trial.call(entry.manifest.tool_id, example.input))
        if not wrong:
            return ""
        said.append(wrong if len(subject.entries) == 1 else f"{entry.manifest.tool_id}: {wrong}")
    return f"With input {quoted(example.input)}: {'; '.join(said) or 'no tool has an input schema that it fits.'}"


def _wrong(example: Example, reply: Reply) -> str:
    if reply.came is not Came.ANSWER:
        return f"it {reply.came}: {reply.message}"
    places = islice(unexpected(example.expected_output, reply.output), _PLACES)
    return "; ".join(f"at {path} {quoted(expected)} was expected and {quoted(came)} came" for path, expected, came in places)
