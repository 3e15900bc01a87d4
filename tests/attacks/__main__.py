"""`python -m tests.attacks`: runs every attack at full size on services of its own, and writes a table.

Ends with 1 if a required property did not hold.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import describe_machine, load_average
from bench.processes import end_in_order
from tests.attacks.kinds import KINDS
from tests.attacks.peer import running_peer
from tests.attacks.running import Extent, run_kind
from tests.attacks.table import markdown, write
from tests.attacks.verdict import Row
from tests.docker.engines import remove_images_of


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    asked = parser.parse_args(arguments)
    names = [f"{kind.name}.{attack.name}" for kind in KINDS for attack in kind.attacks]
    if asked.only and not any(name.startswith(asked.only) for name in names):
        parser.error(f"--only {asked.only}: no attack's name begins so. There are {', '.join(names)}.")
    signal.signal(signal.SIGTERM, end_in_order)
    extent = Extent(quick=asked.quick, only=asked.only)
    before, began = load_average(), datetime.now(UTC)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tool-agent-attacks-", ignore_cleanup_errors=True) as folder, running_peer() as peer:
        # Tools run as another user and have to find their way in.
        Path(folder).chmod(0o711)
        for kind in KINDS:
            for row in run_kind(kind, Path(folder) / kind.name, peer, extent):
                rows.append(row)
                _say(f"{'held' if not row.faults else 'NOT '} {row.kind}.{row.name}: {row.answer} {'; '.join(row.faults)}")
        remove_images_of(Path(folder))
    about = {
        **describe_machine(),
        "command": " ".join(("python -m tests.attacks", *arguments)),
        "taken": f"{began:%Y-%m-%d %H:%M} UTC, in {(datetime.now(UTC) - began).total_seconds() / 60:.0f} minutes",
        "load average": f"{before} before, {load_average()} after",
    }
    _say(markdown(rows, about))
    if not asked.no_file:
        _say(f"written: {write(rows, about, asked.results, asked.name or f'{began:%Y-%m-%d}').name}")
    return 1 if not rows or any(row.faults for row in rows) else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="SIGTERM in the middle of one attack of each kind only")
    parser.add_argument("--only", metavar="KIND[.NAME]", help="only attacks whose names begin like this: bombs, values.lists")
    parser.add_argument("--name", help="of the file of the results; default: the date")
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("results"), help="folder of the results")
    parser.add_argument("--no-file", action="store_true", help="print the table, write nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
