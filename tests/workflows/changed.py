"""A workflow with other commands than ours, which replay must report."""

from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue

__all__ = ["Changed"]


@workflow.defn(dynamic=True)
class Changed:
    """Replaces every workflow that is not registered by name."""

    @workflow.run
    async def run(self, _inputs: Sequence[RawValue]) -> None:
        await workflow.sleep(timedelta(days=1))
