"""Whether a call may be made: one module a check and one line here, in the order of asking. The first that refuses has the last word."""

from engine.calls.checks import (
    confirmation,
    dependencies,
    earlier_result,
    executor,
    file_names,
    parameters,
    size,
    status,
    streaming,
    tool,
)
from engine.calls.checks.asked import Check

__all__ = ["CHECKS"]

CHECKS: tuple[Check, ...] = (
    earlier_result.CHECK,
    size.CHECK,
    tool.CHECK,
    status.CHECK,
    confirmation.CHECK,
    streaming.CHECK,
    executor.CHECK,
    dependencies.CHECK,
    parameters.CHECK,
    file_names.CHECK,
)
"""What was answered is answered again whatever has changed since. After `tool` it is known which version is called."""
