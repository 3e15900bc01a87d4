"""The checks of a call: one module and one line here for each, in order.

The first refusal ends admission.
"""

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
"""An earlier answer is repeated, whatever has changed since. After `repair` the called version is fixed."""

CHECKS_OF_ID: tuple[Check, ...] = (earlier_result.CHECK, claim.CHECK)
"""The checks of a call that will not be made."""
