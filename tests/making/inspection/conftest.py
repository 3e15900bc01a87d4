"""A real sandbox and real repositories."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.making.building.builds import Place
from engine.making.building.imported_packages import ImportedPackages
from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.index_addresses import addresses_from
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.node_projects.preparing import NodeProjects
from engine.making.python_projects.preparing import PythonProjects
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.runtimes.environments.execution import Executor
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings, Sandboxing
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.process.processes import Launcher
from tests.parts import installer_of, launching, machine_indexes, sandboxing
from toolagent_service.contracts.dependency_policy import DependencyPolicy


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(scope="session")
def environments_folder(environments: Path) -> Path:
    return environments


@pytest.fixture
def launcher(state: Path) -> Generator[Launcher]:
    state.mkdir()
    with launching(state) as launcher:
        yield launcher


@pytest.fixture
def sandbox(state: Path, launcher: Launcher, environments_folder: Path) -> Sandboxing:
    return sandboxing(state, launcher, environments_folder)


@pytest.fixture
def projects(launcher: Launcher, sandbox: Sandboxing) -> PythonProjects:
    programs = sandbox.environments.programs
    installer = installer_of(machine_indexes(programs), sandbox.egress)
    runs = UvRuns(Executor(launcher, sandbox.sandbox), programs, installer)
    return PythonProjects(runs, ProjectLocks(runs), sandbox.environments)


@pytest_asyncio.fixture
async def gate(sandbox: Sandboxing) -> AsyncGenerator[DependencyGate]:
    index = SimpleIndex(addresses_from(machine_indexes(sandbox.environments.programs)))
    yield DependencyGate(DependencyPolicy(), index, PopularPackages.of(("colorama", "pyyaml yaml")))
    await index.aclose()


@pytest.fixture
def imported(launcher: Launcher, sandbox: Sandboxing, state: Path, gate: DependencyGate) -> ImportedPackages:
    programs = sandbox.environments.programs
    runs = UvRuns(Executor(launcher, sandbox.sandbox), programs, installer_of(machine_indexes(programs), sandbox.egress))
    return ImportedPackages(gate, ProjectLocks(runs), state / "imported")


@pytest.fixture
def place(state: Path) -> Place:
    return Place(state / "tools" / "notes" / "project", "../tools/notes/project", state / "tools" / "notes" / "lock")


@pytest_asyncio.fixture
async def local(state: Path, launcher: Launcher, sandbox: Sandboxing) -> AsyncGenerator[LocalRuntime]:
    http = HttpExchange()
    settings = LocalSettings(data=state / "data", state=state, calls=state / "calls", start_timeout_s=20.0, stop_grace_s=2.0)
    yield LocalRuntime(settings, launcher, sandbox, http)
    await http.aclose()


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def executor(launcher: Launcher, sandbox: Sandboxing) -> Executor:
    return Executor(launcher, sandbox.sandbox)


@pytest.fixture
def node(executor: Executor, sandbox: Sandboxing) -> NodeProjects:
    programs = sandbox.environments.programs
    installer = installer_of(machine_indexes(programs), sandbox.egress)
    return NodeProjects(NpmRuns(executor, programs, installer), sandbox.environments)


@pytest_asyncio.fixture
async def servers(state: Path, launcher: Launcher, sandbox: Sandboxing) -> AsyncGenerator[McpRuntime]:
    http = HttpExchange()
    settings = LocalSettings(data=state / "data", state=state, calls=state / "calls", start_timeout_s=30.0, stop_grace_s=2.0)
    yield McpRuntime(settings, launcher, sandbox, http, lambda _: None)
    await http.aclose()
