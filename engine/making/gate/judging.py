"""Runs all checks on a version, in order."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.making.gate import CHECKS
from engine.making.gate.checks import derived_cases, withheld_examples
from engine.making.gate.subject import Check, Subject, in_time
from toolagent.contracts.making import CheckResult

IN_TIME = "in time"
"""The check that fails when all checks together take too long."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The results of all checks, for the Evidence. `seconds` is the time of all checks together."""

    checks: tuple[CheckResult, ...]
    behaviour: Literal["verified", "unverified"]
    seconds: float

    @property
    def faulty(self) -> Mapping[str, str]:
        """Why a tool must not be called, by tool id; empty if nothing is wrong, or a fault concerns all tools."""
        failed = [check for check in self.checks if not check.passed]
        if not all(check.faults for check in failed):
            return {}
        return {tool_id: f"{check.check}: {fault}" for check in reversed(failed) for tool_id, fault in check.faults.items()}

    @property
    def for_the_maker(self) -> str:
        """The failed checks, in words that a maker can act on; empty if all passed."""
        return "\n\n".join(f"{check.check}: {check.details}" for check in self.checks if not check.passed)


def _unheard(_: str) -> None:
    return


async def judge(subject: Subject, tell: Callable[[str], None] = _unheard, checks: tuple[Check, ...] = CHECKS) -> Judgement:
    """Runs all checks, so that one round finds every fault; but none after a tool that does not start.

    `tell` gets the progress. Raises NotSent if this host runs no tools.
    """
    began = time.monotonic()
    results: list[CheckResult] = []
    async with subject.cases:
        is_done = await in_time(_ask(subject, checks, results, tell), subject.limits.whole_s)
    if not is_done:
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
        tell(f"{result.check}: {'not asked' if not result.applies else 'passed' if result.passed else 'failed'}")
        if check is checks[0] and not result.passed:
            return
