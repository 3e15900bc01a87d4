"""`python -m tests.long`: runs the tests marked `long`, at full size, and writes a table.

Ends with 1 if a test failed.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from defusedxml import ElementTree

from bench.machine import describe_machine, load_average
from tests.long.table import Row, markdown

_RESULTS = Path(__file__).with_name("results")


def main(arguments: Sequence[str]) -> int:
    """Further arguments are passed to pytest."""
    before, began = load_average(), datetime.now(UTC)
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-m", "long", f"--junitxml={report.name}", *arguments]
        code = subprocess.run(command, check=False).returncode
        rows = [*_rows(Path(report.name))]
    about = {
        **describe_machine(),
        "command": " ".join(("python -m tests.long", *arguments)),
        "taken": f"{began:%Y-%m-%d %H:%M} UTC, in {(datetime.now(UTC) - began).total_seconds() / 60:.0f} minutes",
        "load average": f"{before} before, {load_average()} after",
    }
    path = _RESULTS / f"{began:%Y-%m-%d}.md"
    path.write_text(markdown(rows, about), "utf-8")
    sys.stdout.write(f"written: {path.name}\n")
    return 1 if code or not rows else 0


def _rows(report: Path) -> Iterator[Row]:
    """A row for each test of pytest's report."""
    if not report.stat().st_size:
        return
    for case in ElementTree.parse(report).iter("testcase"):
        outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
        yield Row(f"{case.get('classname')}::{case.get('name')}".removeprefix("tests."), float(case.get("time", 0)), outcome)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
