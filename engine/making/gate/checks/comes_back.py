"""The tool starts again after its process was killed, and answers as before."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from engine.making.gate.checks.derived_cases import as_probed
from engine.making.gate.subject import Came, Subject, not_asked
from engine.making.gate.wording import listed
from engine.runtimes.failures import NotSent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent_service.calls.shared_processes import process_key

NAME = "comes back"


async def check(subject: Subject) -> CheckResult:
    """Files that a crash leaves in the home folder must not keep it from starting."""
    faults: list[str] = []
    killed = 0
    # Tools that share a process end and come back together.
    by_process = defaultdict[str, list[ToolEntry]](list)
    for entry in subject.entries:
        if entry.sources[0].traits.stays_up:
            by_process[_process(entry)].append(entry)
    for entries in by_process.values():
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
        return not_asked(NAME, "It has no process here that could be killed.")
    return CheckResult(check=NAME, passed=not faults, details=listed(faults, subject.limits.told) or "It was killed and came back.")


def _process(entry: ToolEntry) -> str:
    return process_key(entry.manifest, entry.sources[0]) or entry.manifest.tool_id


async def _faults(subject: Subject, entries: Sequence[ToolEntry], before: Sequence["_Seen | None"]) -> list[str]:
    try:
        await subject.trial.start()
    except NotSent as failure:
        # The other checks need a running tool.
        await subject.trial.renew()
        name = entries[0].manifest.tool_id
        return [f"{name!r} was killed and does not start again: {failure.message} {failure.details.get('stderr', '')}".strip()]
    return [fault for entry, came in zip(entries, before, strict=True) if (fault := await _fault(subject, entry, came))]


async def _fault(subject: Subject, entry: ToolEntry, before: "_Seen | None") -> str:
    after = await _asked(subject, entry)
    if before is None or after is None:
        return ""
    name = entry.manifest.tool_id
    if after.came is not before.came:
        return f"{name!r} was killed and started again. The same call that before it {before.came} now it {after.came}."
    # Answers that no example expects may differ each time.
    if before.as_expected and not after.as_expected:
        return f"{name!r} was killed and started again. The example that held before does not hold now: its answer is another."
    return ""


class _Seen(NamedTuple):
    """`as_expected`: it answered what an example says."""

    came: Came
    as_expected: bool


async def _asked(subject: Subject, entry: ToolEntry) -> _Seen | None:
    """The result of one call, which is always the same call; None if no call is harmless."""
    if not subject.may_be_probed(entry):
        return None  # the examples were asked for, but once
    fitting = [one for one in subject.given if entry in await subject.tools_for(one)]
    inputs = [example.input for example in fitting] or await subject.cases.of(as_probed(entry.manifest))
    if not inputs:
        return None
    reply = await subject.trial.call(entry.manifest.tool_id, inputs[0])
    return _Seen(reply.came, bool(fitting) and reply.holds(fitting[0]))
