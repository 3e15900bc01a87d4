"""Requests that are made from our own OpenAPI document, right and wrong ones, by schemathesis."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.environments import made_environment
from tests.attacks.attack import Attack, Kind, Target, expect

__all__ = ["KIND", "statuses_in"]

_CASES = 2_000
_LIMIT_S = 300
_REQUIREMENTS = Path(__file__).with_name("fuzz.txt")
_REQUEST, _STATUS = re.compile(r"^    (?:uri|method): '(.*)'$"), re.compile(r"^      code: '(\d+)'$")
# Each operation gets as many; those of tools may well fail as a tool fails (502 to 504), but nothing is our own fault (500).
_FAULT = 500


def documented(target: Target) -> str:
    operations = sum(len(methods) for methods in target.http.get("/openapi.json").json()["paths"].values())
    each = max(1, -(-(_CASES if target.is_long else 200) // operations))
    # Its interpreter, not our own: it brings packages that are not in our lock.
    program = made_environment("schemathesis", _REQUIREMENTS).with_name("schemathesis")
    options = "--phases=fuzzing --checks=not_a_server_error --continue-on-failure --no-shrink --no-color --generation-database=none"
    with TemporaryDirectory() as folder:
        report = Path(folder) / "cases.yaml"
        more = [
            f"--max-examples={each}",
            f"--report-vcr-path={report}",
            "--request-timeout=30",
            "--workers=4",
        ]
        command = [str(program), "run", f"{target.service.api_url}/openapi.json", *options.split(), *more]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        expect(report.exists(), f"schemathesis made nothing: {done.stdout[-300:]}{done.stderr[-300:]}")
        seen = [*statuses_in(report.read_text("utf-8"))]
    faults = sorted({where for where, status in seen if status == _FAULT})
    expect(not faults, f"500 from {', '.join(faults)[:300]}")
    by_status = Counter(status for _, status in seen)
    return f"{len(seen):,} cases: " + ", ".join(f"{number}× {status}" for status, number in sorted(by_status.items()))


def statuses_in(cassette: str) -> Iterator[tuple[str, int]]:
    """Of each case its request line and status."""
    request: list[str] = []
    for line in cassette.splitlines():
        if found := _REQUEST.match(line):
            request = [found[1]] if found[1].startswith("http") else [*request, found[1]]
        elif found := _STATUS.match(line):
            yield " ".join(reversed(request))[:80], int(found[1])


KIND = Kind(
    "fuzz",
    (Attack("documented", "2,000 cases of schemathesis over the OpenAPI document", documented, is_load=True, in_ci=False),),
    settings={"SHUTDOWN_GRACE_S": "5"},
)
