"""It comes back after it was killed, and does what it did before."""

from engine.making.gate.subject import Came, Params, Reply, Subject
from engine.making.gate.wording import listed
from engine.runtimes.failures import NotSent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult

__all__ = ["NAME", "check"]

NAME = "comes back"


async def check(subject: Subject) -> CheckResult:
    """What a crash leaves in its home folder must not keep it from starting."""
    faults: list[str] = []
    killed = 0
    for entry in subject.entries:
        before = await _asked(subject, entry)
        if not await subject.trial.kill(entry.manifest.tool_id):
            continue
        killed += 1
        fault = await _fault(subject, entry, before)
        faults += [fault] if fault else []
    if not killed:
        return CheckResult(check=NAME, passed=True, applies=False, details="It has no process here that could be killed.")
    return CheckResult(check=NAME, passed=not faults, details=listed(faults, subject.limits.told) or "It was killed and came back.")


async def _fault(subject: Subject, entry: ToolEntry, before: Came | None) -> str | None:
    name = entry.manifest.tool_id
    try:
        await subject.trial.start()
    except NotSent as failure:
        # So that the other checks tell of themselves.
        await subject.trial.renew()
        return f"{name!r} was killed and does not start again: {failure.message} {failure.details.get('stderr', '')}".strip()
    after = await _asked(subject, entry)
    if before is None or after is before:
        return None
    return f"{name!r} was killed and started again. The same call that before {_ended(before)} now {_ended(after)}."


def _ended(came: Came | None) -> str:
    return f"it {came}" if came is not None else "was not made"


async def _asked(subject: Subject, entry: ToolEntry) -> Came | None:
    """What comes of one call, always the same; None where there is none that could be made without harm."""
    params = await _params(subject, entry)
    if params is None:
        return None
    reply: Reply = await subject.trial.call(entry.manifest.tool_id, params)
    return reply.came


async def _params(subject: Subject, entry: ToolEntry) -> Params | None:
    if not subject.may_be_probed(entry):
        return None  # the examples were asked for, but once
    for example in subject.given:
        if entry in subject.takers(example):
            return example.input
    return next(iter(await subject.cases.of(entry.manifest)), None)
