"""Requests that are made from our own OpenAPI document, right and wrong ones, by schemathesis."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from bench.environments import made_environment
from tests.attacks.attack import Attack, Kind, Target, expect
from workers.settings.environment import environment

__all__ = ["KIND", "statuses_in"]

_CASES, _FEW = 2_000, 200
_ROUNDS = 4
_LIMIT_S = 300
_REQUIREMENTS = Path(__file__).with_name("fuzz.txt")
_REQUEST, _STATUS = re.compile(r"^    (?:uri|method): '(.*)'$"), re.compile(r"^      code: '(\d+)'$")
_FAULT = 500
_OF_OTHERS = re.compile(r"POST http://[^/]+/(run_tool|select_tool|agent/action|tools/[^/]+/\w+|mcp_servers|im/functions/[^/]+)\b")
"""Requests that need a tool, an MCP server or the IM server. These may fail: some tools always do, and no IM server is set."""


_HOOKS = """
import schemathesis

@schemathesis.hook
def filter_path_parameters(context, path_parameters):
    given = path_parameters or {}
    return given.get("tool_id") != "echo" and not str(given.get("host", "")).startswith("host-")
"""
"""Calls of the monitor fail, by right, if their tool is deactivated or their host drains."""


def documented(target: Target) -> str:
    """As many rounds as it takes: an operation without parameters has one case, whatever is asked for."""
    wanted = _CASES if target.is_long else _FEW
    operations = sum(len(methods) for methods in target.http.get("/openapi.json").json()["paths"].values())
    seen: list[tuple[str, int]] = []
    for _ in range(_ROUNDS):
        if len(seen) < wanted:
            seen += _round(target, -(-wanted // operations))
    _stop_tools(target)
    faults = sorted({f"{status} from {where}" for where, status in seen if _is_fault(where, status)})
    expect(not faults, "; ".join(faults)[:300])
    expect(len(seen) >= wanted, f"only {len(seen):,} cases in {_ROUNDS} rounds")
    by_status = Counter(status for _, status in seen)
    return f"{len(seen):,} cases: " + ", ".join(f"{number}× {status}" for status, number in sorted(by_status.items()))


def _round(target: Target, each: int) -> list[tuple[str, int]]:
    """At most `each` cases for an operation, other ones each time."""
    # Its interpreter, not our own: it brings packages that are not in our lock.
    program = made_environment("schemathesis", _REQUIREMENTS).with_name("schemathesis")
    options = "--phases=fuzzing --checks=not_a_server_error --continue-on-failure --no-shrink --no-color --generation-database=none"
    with TemporaryDirectory() as folder:
        report = Path(folder) / "cases.yaml"
        (Path(folder) / "spares_echo.py").write_text(_HOOKS)
        variables = {**environment(), "SCHEMATHESIS_HOOKS": "spares_echo", "PYTHONPATH": folder}
        more = [f"--max-examples={each}", f"--report-vcr-path={report}", "--request-timeout=30", "--workers=4"]
        command = [str(program), "run", f"{target.service.api_url}/openapi.json", *options.split(), *more]
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        expect(report.exists(), f"schemathesis made nothing: {done.stdout[-300:]}{done.stderr[-300:]}")
        return [*statuses_in(report.read_text("utf-8"))]


def _stop_tools(target: Target) -> None:
    """What was started because it was asked for would run on, by right."""
    for tool in target.ask("GET", "/tools").json()["tools"]:
        if tool["state"] != "stopped":
            target.ask("POST", f"/tools/{quote(tool['tool_id'], safe='')}/stop")


def _is_fault(where: str, status: int) -> bool:
    """502 to 504 may be a failure of others; 500 is always ours."""
    return status >= _FAULT and (status == _FAULT or not _OF_OTHERS.match(where))


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
