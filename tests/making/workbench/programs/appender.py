"""A worker that is killed while it appends; it names each use before it begins."""

import sys
from itertools import count
from pathlib import Path

from engine.making.workbench.files import BenchFiles
from engine.making.workbench.places import place_of

if __name__ == "__main__":
    bench, first = Path(sys.argv[1]), int(sys.argv[2])
    files = BenchFiles(bench, bench / "uses")
    for number in count(first):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        files.write(place_of("log.txt"), f"{number}\n", "append", f"use {number}")
