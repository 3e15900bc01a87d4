"""`python -m tests.long`: what the suite shows in short at its full size, and a table of it; ends with 1 when something did not hold."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.machine import describe_machine, load_average
from tests.long.table import Row, markdown

_RESULTS = Path(__file__).with_name("results")


class _Rows:
    """Keeps how each test ended."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self.rows.get(report.nodeid, Row(report.nodeid, 0.0, "passed"))
        outcome = before.outcome if report.passed else report.outcome
        self.rows[report.nodeid] = Row(report.nodeid, before.seconds + report.duration, outcome)


def main(arguments: Sequence[str]) -> int:
    """Further arguments are pytest's."""
    before, began, kept = load_average(), datetime.now(UTC), _Rows()
    code = pytest.main(["-m", "long", *arguments], plugins=[kept])
    about = {
        **describe_machine(),
        "command": " ".join(("python -m tests.long", *arguments)),
        "taken": f"{began:%Y-%m-%d %H:%M} UTC, in {(datetime.now(UTC) - began).total_seconds() / 60:.0f} minutes",
        "load average": f"{before} before, {load_average()} after",
    }
    if kept.rows:
        path = _RESULTS / f"{began:%Y-%m-%d}.md"
        path.write_text(markdown([*kept.rows.values()], about), "utf-8")
        sys.stdout.write(f"written: {path.name}\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
