"""`make repositories DIR=…`: has a tool made of each of the drawn repositories, of clones in a folder, and calls it.

None of their code is run outside of the sandbox, and none is kept.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml
from rich.console import Console

from bench.repositories.mocks import HOST, free_port, mocked
from bench.repositories.outcomes import Outcome, tried
from bench.repositories.table import written
from bench.repositories.wanted import Calls, Wanted, calls_of, clone_of, repositories_of
from bench.service import ROOT, OurService

_HERE = Path(__file__).parent


def main(arguments: Sequence[str]) -> int:
    """Returns 0 also where some become none: that is a finding."""
    parser = argparse.ArgumentParser(prog="python -m bench.repositories", description=__doc__)
    parser.add_argument("clones", type=Path, help="folder of working trees, named <owner>+<name>")
    parser.add_argument("--only", default="", help="those with this in their kind or name")
    parser.add_argument("--seconds", type=float, default=900.0, help="what one may take")
    parser.add_argument("--output", type=Path, help="where the table goes (default: bench/results, by the day)")
    asked = parser.parse_args(arguments)
    wanted = [one for one in repositories_of(yaml.safe_load((_HERE / "drawn.yaml").read_text("utf-8"))) if asked.only in one.label]
    calls = calls_of(yaml.safe_load((_HERE / "calls.yaml").read_text("utf-8")))
    console, outcomes = Console(width=None if sys.stdout.isatty() else 200), list[Outcome]()
    target = asked.output or ROOT / "bench/results" / f"{datetime.now(UTC).date().isoformat()}-repositories.md"
    with tempfile.TemporaryDirectory() as folder:
        for outcome in _outcomes(Path(folder), wanted, calls, asked.clones, asked.seconds):
            console.print(outcome.line, markup=False, highlight=False, soft_wrap=True)
            outcomes.append(outcome)
            # Each time: who ends it keeps what is there.
            target.write_text(written(outcomes), "utf-8")
    return 0


def _outcomes(folder: Path, wanted: Sequence[Wanted], calls: Calls, clones: Path, seconds: float) -> Iterator[Outcome]:
    data = folder / "data"
    data.mkdir()
    policy, port = folder / "policy.yaml", free_port()
    policy.write_text(f"private_hosts: ['{HOST}:{port}']\n", "utf-8")
    settings = {"REPO_SCHEMES": "file,https", "SANDBOX_POLICY": str(policy)}
    settings |= {"SECRET_BENCH": "only-for-this-bench-0123456789abcdef"}  # `secret:BENCH` in the `env` of the task of a call
    # A mock takes any key; the service sends none that is not set.
    keys = {"API_KEY": "bench", "LOGIN": "bench:bench"}
    settings |= {f"SECRET_{one.tool_name.upper()}_{name}": key for one in wanted if one.document for name, key in keys.items()}
    service = OurService(folder / "service", data, settings)
    try:
        for one in wanted:
            clone = clone_of(clones, one, folder / "clones")
            with mocked(one, clone, folder, port) as server:
                yield tried(service, one, clone.as_uri(), calls.get(one.repository), server, seconds)
    finally:
        service.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
