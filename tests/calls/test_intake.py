"""Whether a process takes calls, and which calls run in it."""

import asyncio
import math

from engine.calling.intake import Intake
from toolagent.contracts.manifest import ToolManifest


async def test_it_is_closed_by_the_mark_of_a_drain_and_opened_without_one() -> None:
    intake = Intake()
    assert (intake.is_open, intake.closed_s) == (True, 0.0)
    intake.heed("one")
    intake.drained_of = "one"
    waiting = asyncio.create_task(intake.opened())
    await asyncio.sleep(0)
    intake.heed("one")
    assert (intake.is_open, intake.drained_of, waiting.done()) == (False, "one", False)
    intake.heed("two")
    assert (intake.is_open, intake.drained_of) == (False, None), "another drain is not over"
    intake.heed(None)
    await asyncio.wait_for(waiting, 10)
    assert (intake.is_open, intake.closed_s) == (True, 0.0)


def test_calls_are_counted_by_bucket_and_tool() -> None:
    intake = Intake(("default", "gpu"))
    pen, brush = ToolManifest(tool_id="pen", name="Pen"), ToolManifest(tool_id="brush", name="Brush", bucket="gpu")
    with intake.held(pen), intake.held(pen), intake.held(brush):
        assert (intake.calls, intake.unused_s("pen")) == ({"default": 2, "gpu": 1}, 0.0)
    assert (intake.calls, intake.unused_s("ink")) == ({}, math.inf)
    assert 0.0 < intake.unused_s("pen") < 60.0
