"""It comes back after it was killed, and does what it did before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.making.gate.checks.derived_cases import as_probed
from engine.making.gate.subject import Came, Subject
from engine.making.gate.wording import listed
from engine.runtimes.failures import NotSent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.core.catalog.expectations import unexpected
from toolagent_service.calls.shared_processes import process_key

NAME = "comes back"


async def check(subject: Subject) -> CheckResult:
    """What a crash leaves in its home folder must not keep it from starting."""
    faults: list[str] = []
    killed = 0
    for entries in _by_process([entry for entry in subject.entries if _has_process(entry)]):
        before = [await _asked(subject, entry) for entry in entries]
        try:
            if not await subject.trial.kill(entries[0].manifest.tool_id):
                continue
        except NotSent as failure:
            faults.append(f"{entries[0].manifest.tool_id!r}: {failure.message}")
        else:
            faults += await _faults(subject, entries, before)
        killed += 1
    if not killed:
        return CheckResult(check=NAME, passed=True, applies=False, details="It has no process here that could be killed.")
    return CheckResult(check=NAME, passed=not faults, details=listed(faults, subject.limits.told) or "It was killed and came back.")


def _has_process(entry: ToolEntry) -> bool:
    """Between calls. What has none is not asked."""
    return entry.sources[0].traits.stays_up


def _by_process(entries: Sequence[ToolEntry]) -> Iterable[Sequence[ToolEntry]]:
    """Tools that share a process end and come back together."""
    found: dict[str, list[ToolEntry]] = {}
    for entry in entries:
        key = process_key(entry.manifest, entry.sources[0]) if entry.sources else None
        found.setdefault(key or entry.manifest.tool_id, []).append(entry)
    return found.values()


async def _faults(subject: Subject, entries: Sequence[ToolEntry], before: Sequence["_Seen | None"]) -> list[str]:
    try:
        await subject.trial.start()
    except NotSent as failure:
        # So that the other checks tell of themselves.
        await subject.trial.renew()
        name = entries[0].manifest.tool_id
        return [f"{name!r} was killed and does not start again: {failure.message} {failure.details.get('stderr', '')}".strip()]
    return [fault for entry, came in zip(entries, before, strict=True) if (fault := await _fault(subject, entry, came)) is not None]


async def _fault(subject: Subject, entry: ToolEntry, before: "_Seen | None") -> str | None:
    after = await _asked(subject, entry)
    if before is None or after is None:
        return None
    name = entry.manifest.tool_id
    if after.came is not before.came:
        return f"{name!r} was killed and started again. The same call that before it {before.came} now it {after.came}."
    # Other answers may differ from one time to the next.
    if before.as_expected and not after.as_expected:
        return f"{name!r} was killed and started again. The example that held before does not hold now: its answer is another."
    return None


@dataclass(frozen=True, slots=True)
class _Seen:
    """`as_expected`: it answered what an example says."""

    came: Came
    as_expected: bool


async def _asked(subject: Subject, entry: ToolEntry) -> _Seen | None:
    """What comes of one call, always the same; None where there is none that could be made without harm."""
    if not subject.may_be_probed(entry):
        return None  # the examples were asked for, but once
    fitting = [one for one in subject.given if entry in await subject.tools_for(one)]
    example = fitting[0] if fitting else None
    params = example.input if example else next(iter(await subject.cases.of(as_probed(entry.manifest))), None)
    if params is None:
        return None
    reply = await subject.trial.call(entry.manifest.tool_id, params)
    held = example is not None and reply.came is Came.ANSWER and not any(True for _ in unexpected(example.expected_output, reply.output))
    return _Seen(reply.came, held)
