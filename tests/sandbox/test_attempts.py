"""Every attempt to break out or to do harm, at every level: those that must hold do, and what the others do not hold is written down."""

import subprocess
from pathlib import Path

import pytest

from tests.machine import lacking
from tests.sandbox.attempts import ATTEMPTS, GROUPS
from tests.sandbox.columns import COLUMNS, verdicts
from tests.sandbox.held import record
from toolagent.contracts.sandbox import SandboxLevel

ENGINE = Path(__file__).parents[2] / ".ci" / "engine"


def ready(column: str) -> None:
    """Skips where it cannot be tried."""
    if reason := COLUMNS[column].lacks:
        lacking(reason)
    if COLUMNS[column].level is SandboxLevel.DOCKER:
        started = subprocess.run(["/bin/bash", str(ENGINE)], capture_output=True, text=True, timeout=120, check=False)
        if started.returncode != 0:
            lacking(f"There is no Docker engine: {started.stderr}")


def test_there_are_at_least_sixty_attempts_each_with_a_name_of_its_own() -> None:
    assert len(ATTEMPTS) >= 60
    assert len(ATTEMPTS) == sum(len(group) for group in GROUPS.values())


@pytest.mark.parametrize("column", [name for name, column in COLUMNS.items() if column.holds])
@pytest.mark.timeout(900)
async def test_every_attempt_is_held(column: str) -> None:
    ready(column)
    found = await verdicts(COLUMNS[column])
    assert {name: verdict.by for name, verdict in found.items() if not verdict.held} == {}
    assert found.keys() == ATTEMPTS.keys()


@pytest.mark.parametrize("column", [name for name, column in COLUMNS.items() if not column.holds])
@pytest.mark.timeout(900)
async def test_what_is_not_held_is_what_the_page_says(column: str) -> None:
    ready(column)
    found = await verdicts(COLUMNS[column])
    escaped = {name for name, verdict in found.items() if not verdict.held}
    told = {name for name, verdict in record()[column].items() if not verdict.held}
    # A kernel with less than the one that was recorded holds less; what it holds more is a page out of date.
    assert escaped == told, {name: found[name].by for name in escaped ^ told}


@pytest.mark.parametrize("column", COLUMNS)
def test_the_record_is_of_these_attempts(column: str) -> None:
    assert record()[column].keys() == ATTEMPTS.keys(), "Run `python -m tests.sandbox.held`, then `make docs`."
