"""The real parts that run tools, and a good tool with ways to break it."""

import json
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from engine.making.gate.derivation import Cases, Derivation
from engine.making.gate.judging import Judgement, judge
from engine.making.gate.subject import GateLimits, Subject
from engine.making.gate.trial import TrialLimits, on_trial
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.ownership import MARK, Owner
from engine.runtimes.process.processes import Launcher
from tests.parts import launching, sandboxing
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import NetworkAccess, SecurityContext, SideEffectScope, ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import Example

RECKONER = Path(__file__).parents[2] / "tool_projects" / "reckoner"
INPUT: JsonSchema = {
    "type": "object",
    "properties": {
        "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 20},
        "operation": {"type": "string", "enum": ["sum", "mean"]},
    },
    "required": ["numbers", "operation"],
    "additionalProperties": False,
}
OUTPUT: JsonSchema = {
    "type": "object",
    "properties": {"result": {"type": "number"}, "count": {"type": "integer"}},
    "required": ["result", "count"],
}
GIVEN = (
    Example(input={"numbers": [1, 2, 3], "operation": "sum"}, expected_output={"result": 6}),
    Example(input={"numbers": [2, 4], "operation": "mean"}, expected_output={"result": 3}),
)
WITHHELD = (
    Example(input={"numbers": [70_707, 1], "operation": "sum"}, expected_output={"result": 70_708}),
    Example(input={"numbers": [90_909], "operation": "mean"}, expected_output={"result": 90_909}),
)


class Notes:
    """The audit, in memory."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def note(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


@pytest.fixture
def notes() -> Notes:
    return Notes()


_MADE: dict[str, Cases] = {}


class DerivedOnce(Derivation):
    """Keeps what it derives for the other tests, because a derivation takes a quarter of a second of processor time."""

    def begin(self, manifests: Iterable[ToolManifest]) -> None:
        super().begin([manifest for manifest in manifests if self._key(manifest) not in _MADE])

    async def of(self, manifest: ToolManifest) -> Cases:
        key = self._key(manifest)
        if key not in _MADE:
            _MADE[key] = await super().of(manifest)
        return _MADE[key]

    def _key(self, manifest: ToolManifest) -> str:
        return json.dumps([manifest.tool_id, manifest.version, manifest.input_schema, self.count])


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of environments and of derived cases, shared by all tests."""
    return tmp_path_factory.mktemp("environments"), tmp_path_factory.mktemp("derived")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def launcher(state: Path) -> Generator[Launcher]:
    with launching(state, {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}) as launcher:
        yield launcher


@dataclass(frozen=True, slots=True)
class Court:
    """Judges tools; `derived` is the folder where expensive derivations are kept."""

    parts: RuntimeParts
    derived: Path

    @property
    def state(self) -> Path:
        return self.parts.local.state

    @asynccontextmanager
    async def subject(
        self,
        *entries: ToolEntry,
        given: tuple[Example, ...] = GIVEN,
        withheld: tuple[Example, ...] = WITHHELD,
        limits: GateLimits | None = None,
    ) -> AsyncGenerator[Subject]:
        limits = limits or GateLimits()
        async with on_trial(entries, self.parts, task_id="create_00000000", limits=TrialLimits(start_s=30, call_s=10)) as trial:
            cases = DerivedOnce(self.derived, limits.cases)
            yield Subject(entries, trial, cases, given, withheld, written_by_us=True, limits=limits)

    async def judge(self, *entries: ToolEntry, given: tuple[Example, ...] = GIVEN, withheld: tuple[Example, ...] = WITHHELD) -> Judgement:
        async with self.subject(*entries, given=given, withheld=withheld) as subject:
            return await judge(subject)


@pytest_asyncio.fixture
async def court(tmp_path: Path, state: Path, launcher: Launcher, folders: tuple[Path, Path], notes: Notes) -> AsyncGenerator[Court]:
    """Requires after each test that no process and no folder of a trial is left."""
    environments, derived = folders
    http = HttpExchange(max_result_bytes=64 * 1024)
    parts = RuntimeParts(
        local=LocalSettings(data=tmp_path / "data", state=state, calls=state / "calls", start_timeout_s=20.0, stop_grace_s=2.0),
        launcher=launcher,
        sandboxing=sandboxing(state, launcher, environments, audit=notes),
        http=http,
        secrets=dict[str, str]().get,
        builtin_tools={},
    )
    yield Court(parts, derived)
    await http.aclose()
    assert leftovers(state) == []


def leftovers(state: Path) -> list[str]:
    """Processes of this worker, and folders of trials."""
    mark = Owner.of_this_process(state).mark
    processes = [str(process.pid) for process in psutil.process_iter() if _mark_of(process) == mark]
    trials = state / "trials"
    return [*processes, *(os.listdir(trials) if trials.is_dir() else [])]  # noqa: PTH208 - names alone


def _mark_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error, OSError):
        return process.environ().get(MARK) if process.status() != psutil.STATUS_ZOMBIE else None
    return None


@pytest.fixture
def spoilt(tmp_path: Path) -> Callable[..., ToolEntry]:
    """The good tool as a project of the data folder, with these texts replaced."""

    def make(*changes: tuple[str, str], hosts: tuple[str, ...] = ()) -> ToolEntry:
        project = tmp_path / "data" / "reckoner"
        shutil.copytree(RECKONER, project, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
        text = (project / "main.py").read_text("utf-8")
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (project / "main.py").write_text(text, "utf-8")
        return entry_of(hosts)

    return make


def entry_of(hosts: tuple[str, ...] = ()) -> ToolEntry:
    manifest = ToolManifest(
        tool_id="reckoner",
        name="Reckoner",
        input_schema=INPUT,
        output_schema=OUTPUT,
        side_effect_scope=SideEffectScope.NONE,
        security_context=SecurityContext(network_access=NetworkAccess(allow_hosts=hosts)),
    )
    return ToolEntry(manifest=manifest, sources=(LocalSource(host_dir="reckoner", endpoint_path="/run"),))


def failed_checks(judgement: Judgement) -> list[str]:
    return [check.check for check in judgement.checks if not check.passed]
