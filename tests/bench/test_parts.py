"""The part of the program that a stack belongs to, and the division of a thread's time among parts."""

import pytest

from bench.parts import part_of, parts_of

_MAIN = "main (workers/__main__.py:45)"
_LOOP = "Runner.run (asyncio/runners.py:86)"


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        ((_MAIN, _LOOP), "event loop, futures, the rest"),
        (("_bootstrap (threading.py:9)", "work (somebody/else.py:1)"), "event loop, futures, the rest"),
        ((_MAIN, _LOOP, "perform (engine/calling/lane.py:100)"), "our rules"),
        # The standard library works for its caller.
        ((_MAIN, _LOOP, "perform (engine/calling/lane.py:100)", "dumps (json/__init__.py:183)"), "our rules"),
        ((_MAIN, _LOOP, "get (engine/store/calls.py:1)", "execute (sqlalchemy/engine/base.py:5)"), "SQLAlchemy and our store"),
        ((_MAIN, _LOOP, "run_tool (api/routes/calls.py:18)"), "uvicorn, FastAPI, our middlewares"),
        ((_MAIN, _LOOP, "run (api/client/lane_calls.py:31)"), "our rules"),
        ((_MAIN, _LOOP, "encode (temporalio/converter.py:9)"), "payload conversion"),
        ((_MAIN, _LOOP, "activate (temporalio/worker/_workflow.py:9)"), "temporalio's Python"),
        ((_MAIN, _LOOP, "make (engine/calls/a.py:9)", "model_dump (pydantic/main.py:9)"), "pydantic, jsonschema"),
        ((_MAIN, _LOOP, "encode (temporalio/converter.py:9)", "dump (pydantic/type_adapter.py:9)"), "payload conversion"),
    ],
)
def test_the_innermost_frame_of_a_part_says_what_a_stack_was_busy_with(frames: tuple[str, ...], part: str) -> None:
    assert part_of(frames) == part


def test_the_time_of_a_thread_is_shared_out_by_how_often_its_stacks_were_seen() -> None:
    lines = [
        f"thread (7): MainThread;{_MAIN};{_LOOP} 1",
        f"thread (7): MainThread;{_MAIN};{_LOOP};perform (engine/calling/lane.py:100) 3",
        "thread (8): Thread-1 (_connection_worker_thread);run (aiosqlite/core.py:3) 5",
        # Seen without a frame: not one of Python's.
        "thread (9) 7",
    ]
    parts = parts_of(lines, {7: 4.0, 8: 2.0, 10: 0.5})
    assert {part: seconds for part, seconds in parts.items() if seconds} == {
        "event loop, futures, the rest": 1.5,
        "our rules": 3.0,
        "aiosqlite and its thread hops": 2.0,
    }
