"""What people read of a lane in Temporal's UI."""

from collections import Counter

from toolagent.contracts.lanes import LaneFigures
from toolagent_service.contracts.lanes import LaneBatch

_NAMED = 4
"""Tools that the summary of a batch names."""


def summary_of(batch: LaneBatch) -> str:
    """Such as `echo ×41, calculator ×2`."""
    counted = Counter(call.tool_id for call in batch.calls).most_common()
    named = ", ".join(f"{tool} ×{times}" if times > 1 else tool for tool, times in counted[:_NAMED])
    return named + (f" and {len(counted) - _NAMED} more tools" if len(counted) > _NAMED else "")


def details_of(figures: LaneFigures) -> str:
    """Markdown."""
    told = [
        f"**{figures.per_second:g}** calls a second lately, **{figures.calls}** since the door was opened",
        f"**{figures.waiting}** waiting, **{figures.moved}** moved to a workflow of their own",
    ]
    return "\n\n".join([*told, f"last error: {figures.last_error}"] if figures.last_error else told)
