"""Input that its own schema allows neither crashes it nor makes it break its output schema."""

import asyncio
from dataclasses import dataclass, field

from engine.making.gate.subject import Came, Params, Subject
from engine.making.gate.wording import listed, quoted
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.core.schemas import FILE_PATH, mentions_format

__all__ = ["NAME", "check", "why_not"]

NAME = "derived cases"
_FINE = (Came.ANSWER, Came.REFUSAL)


async def check(subject: Subject) -> CheckResult:
    """To refuse a case with a 4xx is fine: a schema cannot say everything."""
    said: list[str] = []
    faults: list[str] = []
    asked = 0
    for entry in subject.entries:
        no = why_not(subject, entry)
        cases = await subject.cases.of(entry.manifest) if no is None else ()
        if not cases:
            said.append(no or f"none could be derived from the input schema of {entry.manifest.tool_id!r}")
            continue
        tried = await _tried(subject, entry, cases)
        asked += tried.done
        faults += tried.faults
        said += tried.said
    told = "; ".join([f"{asked} cases were tried", *said])
    if not asked and not faults:
        return CheckResult(check=NAME, passed=True, applies=False, details=f"Not asked: {'; '.join(said)}.")
    return CheckResult(check=NAME, passed=not faults, details=f"{told}.\n{listed(faults, len(faults))}".strip())


def why_not(subject: Subject, entry: ToolEntry) -> str | None:
    """Why it is given no cases."""
    name = entry.manifest.tool_id
    if not subject.may_be_probed(entry):
        return f"{name!r} may change something elsewhere, so it is given no made-up input"
    if mentions_format(entry.manifest.input_schema, FILE_PATH):
        return f"{name!r} takes files, which are not made up"
    return None


@dataclass(slots=True)
class _Tried:
    """`done` counts those that were sent; `said` is why others were not."""

    done: int = 0
    faults: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])


async def _tried(subject: Subject, entry: ToolEntry, cases: tuple[Params, ...]) -> _Tried:
    """Until the time is up, or enough was seen."""
    tried, name = _Tried(), entry.manifest.tool_id
    over = asyncio.timeout(subject.limits.cases_s)
    try:
        async with over:
            await _try(subject, name, cases, tried)
    except TimeoutError:
        if not over.expired():  # somebody else's
            raise
        tried.faults += [f"{name!r} was given a case, which took all of {subject.limits.cases_s:g} s."] if not tried.done else []
    if not (tried.done or tried.faults or tried.said):
        tried.said.append(f"no case of {name!r} can be written into a request")
    return tried


async def _try(subject: Subject, tool_id: str, cases: tuple[Params, ...], tried: _Tried) -> None:
    deaths = subject.trial.account().deaths
    for case in cases:
        reply = await subject.trial.call(tool_id, case)
        if reply.came is Came.UNSENDABLE:
            continue
        if reply.came is Came.KEYLESS:
            # Who makes a tool need not trust its server with a key yet.
            tried.said.append(f"{tool_id!r} {reply.came}: {reply.message}")
            return
        tried.done += 1
        before, deaths = deaths, subject.trial.account().deaths
        died = deaths > before
        if reply.came not in _FINE or died:
            ended = " Its process ended." if died else ""
            tried.faults.append(f"With input {quoted(case)}, which its input schema allows, it {reply.came}: {reply.message}{ended}")
        if len(tried.faults) == subject.limits.told:
            return
