"""Runs all checks on a version, in order."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.making.gate import CHECKS
from engine.making.gate.checks import derived_cases, withheld_examples
from engine.making.gate.subject import Check, Subject
from toolagent.contracts.making import CheckResult

IN_TIME = "in time"
"""The name of what fails when the whole of it takes too long."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What goes into the Evidence. `seconds` is how long all of it took."""

    checks: tuple[CheckResult, ...]
    behaviour: Literal["verified", "unverified"]
    seconds: float

    @property
    def faulty(self) -> Mapping[str, str]:
        """By tool, why it is not to be called; empty when nothing is wrong, or something is with all of them."""
        failed = [check for check in self.checks if not check.passed]
        if not all(check.faults for check in failed):
            return {}
        return {tool_id: f"{check.check}: {fault}" for check in reversed(failed) for tool_id, fault in check.faults.items()}

    @property
    def for_the_maker(self) -> str:
        """What did not hold, in words that a maker can act on; empty when all did."""
        return "\n\n".join(f"{check.check}: {check.details}" for check in self.checks if not check.passed)


def _unheard(_: str) -> None:
    return


async def judge(subject: Subject, tell: Callable[[str], None] = _unheard, checks: tuple[Check, ...] = CHECKS) -> Judgement:
    """All checks are made, so that one round tells everything; but none after one that shows that it does not even start.

    `tell` hears what is being asked. Raises NotSent when this host runs no tools.
    """
    began = time.monotonic()
    results: list[CheckResult] = []
    over = asyncio.timeout(subject.limits.whole_s)
    try:
        async with subject.cases, over:
            await _ask(subject, checks, results, tell)
    except TimeoutError:
        if not over.expired():  # not this one
            raise
        told = f"What was asked took all of {subject.limits.whole_s:g} s, so the rest was not. Make it answer faster, or of fewer tools."
        results.append(CheckResult(check=IN_TIME, passed=False, details=told, seconds=round(time.monotonic() - began, 3)))
    shown = any(result.check == withheld_examples.NAME and result.applies and result.passed for result in results)
    return Judgement(tuple(results), "verified" if shown else "unverified", round(time.monotonic() - began, 3))


async def _ask(subject: Subject, checks: tuple[Check, ...], results: list[CheckResult], tell: Callable[[str], None]) -> None:
    subject.cases.begin(
        derived_cases.as_probed(entry.manifest) for entry in subject.entries if derived_cases.why_not(subject, entry) is None
    )
    for check in checks:
        asked = time.monotonic()
        result = await check(subject)
        results.append(result.model_copy(update={"seconds": round(time.monotonic() - asked, 3)}))
        tell(f"{result.check}: {_word(result)}")
        if check is checks[0] and not result.passed:
            return


def _word(result: CheckResult) -> str:
    if not result.applies:
        return "not asked"
    return "passed" if result.passed else "failed"
