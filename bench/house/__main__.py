"""`python -m bench.house [--against COMMIT] [--without-calls]`: a table, before and after."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from bench.against import checked_out
from bench.house.walk import walked
from bench.service import ROOT, Tree


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.house", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="count this commit too")
    parser.add_argument("--without-calls", action="store_true", help="start nothing")
    parser.add_argument("--files", action="store_true", help="name the files of each call")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with checked_out(asked.against, folder) if asked.against else nullcontext() as then:
            trees = [(asked.against, then)] if then else []
            tables = [(label, _of(tree, folder / label, asked)) for label, tree in (*trees, ("now", Tree()))]
    names = [label for label, _ in tables]
    sys.stdout.write(f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}\n")
    for what in tables[-1][1]:
        sys.stdout.write(f"| {what} | {' | '.join(f'{table.get(what, 0):,}' for _, table in tables)} |\n")


def _of(tree: Tree, folder: Path, asked: argparse.Namespace) -> Mapping[str, int]:
    folder.mkdir()
    # In a process of its own: a module that was imported once is not looked for in another tree.
    told = subprocess.run([sys.executable, "-m", "bench.house.counts", str(tree.root)], cwd=ROOT, capture_output=True, check=True).stdout
    table: dict[str, int] = json.loads(told)
    if asked.without_calls:
        return table
    for kind, files in walked(tree, folder).items():
        table[f"files of {kind}"] = len(files)
        if asked.files:
            sys.stderr.write("\n  ".join((f"{kind}:", *files)) + "\n")
    return table


if __name__ == "__main__":
    main()
