"""`python -m bench.chats`: many chats at once, and a long one; 1 when a turn was lost, repeated or out of order."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.chats.checking import Amount, check_chats
from bench.machine import load_average
from bench.processes import end_in_order


def main(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    signal.signal(signal.SIGTERM, end_in_order)
    load = load_average()
    with tempfile.TemporaryDirectory(prefix="tool-agent-chats-") as name:
        checked = check_chats(Path(name) / "chats", Amount(asked.chats, asked.messages, asked.callers, asked.long, asked.model))
    for single in checked.singles():
        console.print(f"{single.label}: {single.value:,.2f} {single.unit}" if single.unit else f"{single.label}: {single.value:,.0f}")
    for number, run in enumerate(checked.runs, start=1):
        console.print(f"  run {number}: {run.events:,} events, {run.bytes:,} bytes")
    for fault in checked.faults:
        console.print(f"BROKEN {fault}", style="red", markup=False, soft_wrap=True)
    console.print(f"load average {load} before, {load_average()} after")
    return 1 if checked.faults else 0


def _parser() -> argparse.ArgumentParser:
    usual, parser = Amount(), argparse.ArgumentParser(prog="python -m bench.chats", description=__doc__)
    parser.add_argument("--chats", type=int, default=usual.chats)
    parser.add_argument("--messages", type=int, default=usual.messages, help="in each of them")
    parser.add_argument("--callers", type=int, default=usual.callers, help="who talk at once")
    parser.add_argument("--long", type=int, default=usual.long, help="messages of the long chat; 0: none")
    parser.add_argument("--model", action="store_true", help="a scripted model answers, instead of rules")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
