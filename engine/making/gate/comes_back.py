"""It comes back after it was killed, and does what it did before."""

from collections.abc import Iterable, Sequence

from engine.making.gate.subject import Came, Params, Reply, Subject
from engine.making.gate.wording import listed
from engine.runtimes.failures import NotSent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.core.shared_processes import process_key

__all__ = ["NAME", "check"]

NAME = "comes back"


async def check(subject: Subject) -> CheckResult:
    """What a crash leaves in its home folder must not keep it from starting."""
    faults: list[str] = []
    killed = 0
    for entries in _by_process(subject.entries):
        before = [await _asked(subject, entry) for entry in entries]
        if not await subject.trial.kill(entries[0].manifest.tool_id):
            continue
        killed += 1
        faults += await _faults(subject, entries, before)
    if not killed:
        return CheckResult(check=NAME, passed=True, applies=False, details="It has no process here that could be killed.")
    return CheckResult(check=NAME, passed=not faults, details=listed(faults, subject.limits.told) or "It was killed and came back.")


def _by_process(entries: Sequence[ToolEntry]) -> Iterable[Sequence[ToolEntry]]:
    """Tools that share a process end and come back together."""
    found: dict[str, list[ToolEntry]] = {}
    for entry in entries:
        key = process_key(entry.manifest, entry.sources[0]) if entry.sources else None
        found.setdefault(key or entry.manifest.tool_id, []).append(entry)
    return found.values()


async def _faults(subject: Subject, entries: Sequence[ToolEntry], before: Sequence[Came | None]) -> list[str]:
    try:
        await subject.trial.start()
    except NotSent as failure:
        # So that the other checks tell of themselves.
        await subject.trial.renew()
        name = entries[0].manifest.tool_id
        return [f"{name!r} was killed and does not start again: {failure.message} {failure.details.get('stderr', '')}".strip()]
    return [fault for entry, came in zip(entries, before, strict=True) if (fault := await _fault(subject, entry, came)) is not None]


async def _fault(subject: Subject, entry: ToolEntry, before: Came | None) -> str | None:
    after = await _asked(subject, entry)
    if before is None or after is before:
        return None
    name = entry.manifest.tool_id
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
