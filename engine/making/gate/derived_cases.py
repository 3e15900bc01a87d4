"""Input that its own schema allows neither crashes it nor makes it break its output schema."""

import asyncio

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
        done, wrong = await _tried(subject, entry, cases)
        asked += done
        faults += wrong
    told = "; ".join([f"{asked} cases were tried", *said])
    if not asked:
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


async def _tried(subject: Subject, entry: ToolEntry, cases: tuple[Params, ...]) -> tuple[int, list[str]]:
    """How many were tried, until the time was up or enough was seen; and what was wrong."""
    faults: list[str] = []
    done, deaths = 0, subject.trial.account().deaths
    try:
        async with asyncio.timeout(subject.limits.cases_s):
            for case in cases:
                reply = await subject.trial.call(entry.manifest.tool_id, case)
                done += 1
                before, deaths = deaths, subject.trial.account().deaths
                died = deaths > before
                if reply.came not in _FINE or died:
                    ended = " Its process ended." if died else ""
                    faults.append(f"With input {quoted(case)}, which its input schema allows, it {reply.came}: {reply.message}{ended}")
                if len(faults) == subject.limits.told:
                    break
    except TimeoutError:
        faults += [f"{done} of {len(cases)} cases took all of {subject.limits.cases_s:g} s."] if not done else []
    return done, faults
