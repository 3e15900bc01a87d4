"""What a version has to show before it may be called: one module a check and one line here, in the order of asking."""

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
"""Without the first nothing else is asked. The last looks back on all the others, and what is withheld is told after all that is not."""


def with_checks(first: Check, before_withheld: Check) -> tuple[Check, ...]:
    """Two more, that may quote what the tool says: one once it has started, one before it is told what its maker must not learn."""
    place = CHECKS.index(withheld_examples.check)
    return (CHECKS[0], first, *CHECKS[1:place], before_withheld, *CHECKS[place:])
