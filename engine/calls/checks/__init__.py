"""Whether a call may be made: one module a check and one line here, in the order of asking. The first refusal ends it."""

from engine.calls.checks import (
    claim,
    confirmation,
    dependencies,
    earlier_result,
    executor,
    file_names,
    parameters,
    quarantine,
    repair,
    size,
    status,
    streaming,
    tool,
)
from engine.calls.checks.asked import Check

__all__ = ["CHECKS", "CHECKS_OF_ID"]

CHECKS: tuple[Check, ...] = (
    earlier_result.CHECK,
    claim.CHECK,
    size.CHECK,
    tool.CHECK,
    status.CHECK,
    repair.CHECK,
    confirmation.CHECK,
    streaming.CHECK,
    executor.CHECK,
    dependencies.CHECK,
    parameters.CHECK,
    quarantine.CHECK,
    file_names.CHECK,
)
"""An earlier answer is given again whatever has changed since. After `repair` it is known which version is called."""

CHECKS_OF_ID: tuple[Check, ...] = (earlier_result.CHECK, claim.CHECK)
"""Of a call that is not to be made."""
