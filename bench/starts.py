"""What the command line and the package take to begin, each in turns with the least that its libraries take."""

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.processes import bare_environment
from bench.results import Single

_BARE = '''
import typer

app = typer.Typer(rich_markup_mode="markdown")

@app.command()
def one(name: str) -> None:
    """Do one thing."""

@app.command()
def two(name: str) -> None:
    """Do another thing."""

app()
'''


def measure_starts(folder: Path, times: int) -> list[Single]:
    """Medians in milliseconds; the first of each does not count."""
    folder.mkdir()
    bare = folder / "bare.py"
    bare.write_text(_BARE, "utf-8")
    python = sys.executable
    ways: Mapping[str, tuple[str, Sequence[str]]] = {
        "help.ours": ("`toolagent --help`", (str(Path(python).with_name("toolagent")), "--help")),
        "help.bare": ("`--help` of a typer app of two commands", (python, str(bare), "--help")),
        "import.ours": ("`import toolagent`", (python, "-c", "import toolagent")),
        "import.bare": ("`import pydantic`", (python, "-c", "import pydantic")),
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(times + 1):
        for way, (_, command) in ways.items():
            begin = time.perf_counter()
            subprocess.run(command, env=bare_environment(), stdout=subprocess.DEVNULL, check=True)
            took[way].append((time.perf_counter() - begin) * 1000)
    return [Single(name=f"start.{way}", label=label, value=statistics.median(took[way][1:]), unit="ms") for way, (label, _) in ways.items()]
