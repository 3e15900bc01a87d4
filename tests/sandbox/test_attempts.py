"""Every attempt at every sandbox level: levels that must hold do, and the gaps of the others are recorded."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.runtimes.sandbox.levels import confine
from tests.machine import lacking
from tests.sandbox.attempts import ATTEMPTS, GROUPS
from tests.sandbox.columns import COLUMNS, CONTROL, verdicts
from tests.sandbox.held import record
from toolagent.contracts.sandbox import SandboxLevel

TOGETHER = 30
SHORT = (
    *(name for name, attempt in ATTEMPTS.items() if attempt.is_shared),
    "send a signal to every process",
    "serve on the machine's ports",
    "reach another run's way, having one itself",
    "fork from every fork (a bomb)",
    "take all memory",
    "fill its own folder",
    "leave a daemon",
)
"""Those that share a sandbox, and one of each kind of the others."""
EXTENTS = pytest.mark.parametrize("names", [pytest.param(SHORT, id="short"), pytest.param((*ATTEMPTS,), id="all", marks=pytest.mark.long)])
_OTHER_USERS = ("docker-user", "rlimits-root")
"""The level is the same; bubblewrap, which every machine has, is tried as both."""
ENGINE = Path(__file__).parents[2] / ".ci" / "engine"


HELD, NOT_HELD = (
    [pytest.param(name, marks=pytest.mark.long if name in _OTHER_USERS else ()) for name in COLUMNS if COLUMNS[name].holds is holds]
    for holds in (True, False)
)


def ready(column: str) -> None:
    """Skips if it cannot be tried."""
    if COLUMNS[column].level is SandboxLevel.DOCKER:
        started = subprocess.run(["/bin/bash", str(ENGINE)], capture_output=True, text=True, timeout=120, check=False)
        if started.returncode != 0:
            lacking(f"There is no Docker engine: {started.stderr}")
    if reason := COLUMNS[column].lacks:
        lacking(reason)


def test_there_are_at_least_sixty_attempts_each_with_a_name_of_its_own() -> None:
    assert len(ATTEMPTS) >= 60
    assert len(ATTEMPTS) == sum(len(group) for group in GROUPS.values())


@EXTENTS
@pytest.mark.parametrize("column", HELD)
@pytest.mark.timeout(900)
async def test_every_attempt_is_held(column: str, names: Sequence[str]) -> None:
    ready(column)
    found = await verdicts(COLUMNS[column], names, together=TOGETHER)
    assert {name: verdict.by for name, verdict in found.items() if not verdict.held} == {}
    assert found.keys() == set(names)


@EXTENTS
@pytest.mark.parametrize("column", NOT_HELD)
@pytest.mark.timeout(900)
async def test_what_is_not_held_is_what_the_page_says(column: str, names: Sequence[str]) -> None:
    ready(column)
    found = await verdicts(COLUMNS[column], names, together=TOGETHER)
    assert found.keys() == set(names)
    escaped = {name for name, verdict in found.items() if not verdict.held}
    told = {name for name, verdict in record().columns[column].items() if name in names and not verdict.held}
    # With another Landlock than when it was recorded less may be held; what is held that the page says is not is a page out of date.
    is_same = confine.abi() == record().landlock
    assert (escaped == told) if is_same else (told <= escaped), {name: found[name].by for name in escaped ^ told}


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_at_least_sixty_attempts_succeed_without_a_sandbox() -> None:
    # A few more than are wanted, and not those that take long, as nothing runs beside them.
    recorded = sorted((name for name, verdict in record().control.items() if not verdict.held), key=lambda name: ATTEMPTS[name].alone)[:66]
    found = await verdicts(CONTROL, recorded)
    assert found.keys() == set(recorded)
    assert sum(not verdict.held for verdict in found.values()) >= 60, found


@pytest.mark.parametrize("column", COLUMNS)
def test_the_record_is_of_these_attempts(column: str) -> None:
    assert record().columns[column].keys() == ATTEMPTS.keys(), "Run `python -m tests.sandbox.held`, then `make docs`."


def test_the_record_says_which_attempts_tell_something() -> None:
    assert record().control.keys() == {name for name, attempt in ATTEMPTS.items() if not attempt.harms}
    assert sum(not verdict.held for verdict in record().control.values()) >= 60
