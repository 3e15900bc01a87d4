"""The lane of one front door: batches of short calls, each an update.

The door makes the calls; records have their ends.
"""

from collections import Counter

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.contracts.lanes import LaneFigures
from toolagent_service import step_names, stubs
from toolagent_service.contracts.lanes import LaneBatch, LaneEnds
from workflows import options
from workflows.inputs import input_of, malformed

_MOST_UPDATES, _MOST_CALLS = 600, 5_000
"""The limits of one run. The server suggests a new run after 4,096 events; an update has six."""

_A_BATCH, _MOST_BYTES = 64, 3 * 1024 * 1024
"""The most calls that a door sends in a batch, and the size of a long history. The server suggests a new run at 4 MiB."""

_NAMED = 4
"""The most tools in the summary of a batch."""


@workflow.defn(name=step_names.CALL_LANE)
class CallLane:
    def __init__(self) -> None:
        self._updates, self._calls = 0, 0
        self._is_closed, self._is_full = False, False

    @workflow.run
    async def run(self, *surplus: JsonValue) -> None:
        """Continues as a new run when this one is long; ends when its door closes."""
        if surplus:
            raise malformed("A lane takes no input.")
        await workflow.wait_condition(lambda: self._is_closed or self._is_full)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not self._is_closed:
            workflow.continue_as_new()

    @workflow.update(name=step_names.TAKE)
    async def take(self, batch: JsonValue = None, *surplus: JsonValue) -> LaneEnds:
        """Make a batch. It takes no longer than the lane's budget."""
        asked = input_of(LaneBatch, batch, surplus)
        self._updates, self._calls = self._updates + 1, self._calls + len(asked.calls)
        # Set here, not where batches are refused: a workflow task of refusals alone does not wake the run.
        self._is_full = self._is_full or self._is_long
        made = await workflow.execute_local_activity(stubs.make_batch, asked, **options.make_batch(_summary_of(asked)))
        workflow.set_current_details(_details_of(made.figures))
        return made.model_copy(update={"is_ending": self._is_ending})

    @take.validator
    def _require_batch(self, batch: JsonValue = None, *surplus: JsonValue) -> None:
        """A batch refused here is not in the history."""
        if self._is_closed or self._is_full:
            raise ApplicationError("This run of the lane takes no more; ask again.", type=step_names.LANE_DRAINS)
        input_of(LaneBatch, batch, surplus)

    @workflow.signal(name=step_names.CLOSE)
    def close(self, *_: JsonValue) -> None:
        self._is_closed = True

    @property
    def _is_ending(self) -> bool:
        """Whether two more batches may make the run long."""
        is_full = self._updates >= _MOST_UPDATES - 2 or self._calls >= _MOST_CALLS - 2 * _A_BATCH
        return is_full or workflow.info().get_current_history_size() >= _MOST_BYTES

    @property
    def _is_long(self) -> bool:
        is_full = self._updates >= _MOST_UPDATES or self._calls >= _MOST_CALLS
        return is_full or workflow.info().is_continue_as_new_suggested()


def _summary_of(batch: LaneBatch) -> str:
    """For example `echo ×41, calculator ×2`."""
    counted = Counter(call.tool_id for call in batch.calls).most_common()
    named = ", ".join(f"{tool} ×{times}" if times > 1 else tool for tool, times in counted[:_NAMED])
    return named + (f" and {len(counted) - _NAMED} more tools" if len(counted) > _NAMED else "")


def _details_of(figures: LaneFigures) -> str:
    """Markdown."""
    told = [
        f"**{figures.per_second:g}** calls a second lately, **{figures.calls}** since the door was opened",
        f"**{figures.waiting}** waiting, **{figures.moved}** moved to a workflow of their own",
    ]
    return "\n\n".join([*told, f"last error: {figures.last_error}"] if figures.last_error else told)
