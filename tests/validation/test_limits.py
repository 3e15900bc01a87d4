"""The limits of a check, however expensive its schema is."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from pydantic import JsonValue

from tests.validation.recursive import TWICE, nested
from toolagent.contracts.contract import JsonSchema
from toolagent.validation import checkers, schemas
from toolagent.validation.checkers import CheckersBusyError
from toolagent.validation.judgement import Judgement, judged
from toolagent.validation.schemas import MAX_ISSUES, find_issues, issues_of, schema_faults

T = TypeVar("T")
STOOD_STILL_S = 0.5
TURNS = 5
"""A loop that is blocked has one at most."""


async def longest_pause(work: Callable[[], Awaitable[T]]) -> tuple[T, float, int]:
    """The result of the work, the longest pause of the event loop in this process's own CPU time, and the turns of the loop meanwhile.

    A loop that waits for another process takes neither CPU time nor turns."""
    longest, last, turns = 0.0, time.process_time(), 0

    async def watch() -> None:
        nonlocal longest, last, turns
        while True:
            now = time.process_time()
            longest, last, turns = max(longest, now - last), now, turns + 1
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    try:
        result = await work()
        return result, max(longest, time.process_time() - last), turns
    finally:
        watching.cancel()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (TWICE, nested(18)),
        ({"items": {"type": "string"}}, [1] * 100_000),
        ({"items": {"enum": [{"k": number} for number in range(10_000)]}}, [{"k": number} for number in range(5000)]),
        ({"items": {"multipleOf": 0.01}}, [int("9" * 4000)] * 1000),
    ],
    ids=["two branches", "many reasons", "a long list", "long numbers"],
)
async def test_the_event_loop_goes_on_whatever_is_checked(schema: JsonSchema, value: JsonValue) -> None:
    issues, pause, turns = await longest_pause(lambda: find_issues(schema, value))
    assert pause < STOOD_STILL_S
    assert turns >= TURNS
    assert len(issues) <= MAX_ISSUES


def test_a_value_that_is_known_not_to_fit_is_told_so_when_the_reasons_take_too_long() -> None:
    assert issues_of({"items": {"type": "string"}}, ones(300_000))[0].path == "$[0]"
    (issue,) = issues_of(TWICE, nested(30))
    assert (issue.path, issue.message.partition(",")[0]) == ("$", "The value does not fit")
    assert [found.path for found in issues_of(TWICE, nested(2))] == ["$.a"]  # the next check has a process again


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkers, "REASONS_S", 250.0)
    monkeypatch.setattr(checkers, "CHECK_MEMORY_BYTES", 256 << 20)
    begun = time.monotonic()
    (issue,) = issues_of(TWICE, nested(18))
    assert issue.keyword == "limit"
    assert time.monotonic() - begun < 200  # not by its time


def test_a_value_nested_without_end_is_an_issue_of_its_own() -> None:
    assert [issue.path for issue in issues_of(TWICE, nested(5000))] == ["$"]


def ones(count: int) -> list[JsonValue]:
    return [1 for _ in range(count)]


def test_an_ordinary_value_is_checked_without_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(schemas, "check", never)
    schema: JsonSchema = {
        "type": "object",
        "properties": {"q": {"type": "string", "pattern": "^[a-z]{1,64}$"}, "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["q"],
    }
    assert issues_of(schema, {"q": "words", "n": None}) == ()
    assert [issue.path for issue in issues_of(schema, {"q": "no words", "n": "x"})] == ["$.q", "$.n"]
    assert issues_of({"items": {"type": "number"}}, ones(50_000)) == ()


async def test_a_schema_is_judged_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def seen(schema: JsonSchema) -> Judgement:
        threads.append(threading.current_thread())
        return judged(schema)

    monkeypatch.setattr(schemas, "judged", seen)
    schema: JsonSchema = {"title": "seen by nobody yet", "type": "integer"}
    assert await find_issues(schema, 1) == await find_issues(schema, 2) == ()
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


async def test_who_waits_too_long_for_others_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkers, "_PATIENCE_S", 0.05)
    ended = await asyncio.gather(*(find_issues(TWICE, nested(18)) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(one, CheckersBusyError) for one in ended) >= 1
    assert all(isinstance(one, tuple | CheckersBusyError) for one in ended)


def test_what_is_no_schema_is_told_also_when_it_is_large() -> None:
    patterns: JsonValue = {f"p{number}": {"pattern": f"(a{{1,{500 + number}}}){{1,30}}"} for number in range(60)}
    assert schema_faults({"properties": patterns}) == ()
    assert [fault.keyword for fault in schema_faults({"properties": patterns, "pattern": "("})] == ["$schema"]
    assert [fault.path for fault in schema_faults({"properties": patterns, "required": 1})] == ["$.required"]


STOPPING = """
import asyncio
from tests.validation.recursive import TWICE, nested
from toolagent.validation import checkers

checkers.CHECK_S = checkers.REASONS_S = checkers._PATIENCE_S = 600

async def main():
    checks = [asyncio.ensure_future(checkers.check_soon(__import__("json").dumps(TWICE), nested(30), 1)) for _ in range(4)]
    await asyncio.sleep(1)
    checkers.end_checks()
    ended = await asyncio.gather(*checks, return_exceptions=True)
    assert all(isinstance(one, checkers.CheckersBusyError) and "stops" in str(one) for one in ended), ended

asyncio.run(main())
"""


def test_a_program_that_stops_does_not_wait_for_its_checks() -> None:
    done = subprocess.run([sys.executable, "-c", STOPPING], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
