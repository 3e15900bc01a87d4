"""The checks that a version has to pass: one module and one line here for each, in order."""

from engine.making.gate.checks import bad_input, comes_back, derived_cases, given_examples, health, starts, stays_within, withheld_examples
from engine.making.gate.subject import Check

CHECKS: tuple[Check, ...] = (
    starts.check,
    health.check,
    given_examples.check,
    derived_cases.check,
    bad_input.check,
    comes_back.check,
    withheld_examples.check,
    stays_within.check,
)
"""If the first fails, the others are not run. The last looks back on all others. Withheld examples come after all that may be quoted."""


def with_checks(first: Check, before_withheld: Check) -> tuple[Check, ...]:
    """Adds two checks that may quote the tool: one after its start, one before the withheld examples."""
    place = CHECKS.index(withheld_examples.check)
    return (CHECKS[0], first, *CHECKS[1:place], before_withheld, *CHECKS[place:])
