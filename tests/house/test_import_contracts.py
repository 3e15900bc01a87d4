"""Each import contract of pyproject.toml breaks at an import that it forbids."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bench.house.counts import longest_chain

HERE = Path(__file__).resolve().parents[2]
PACKAGES = ("packages/toolagent/src/toolagent", "packages/service/src/toolagent_service")
SOURCES = (*PACKAGES, "engine", "workflows", "activities", "api", "workers", "tool_agent")

# Contract id → the folder that does wrong, and the import. A module nobody imports breaks one contract and starts no chain.
BREACHES: dict[str, tuple[str, str]] = {
    "house": ("activities", "import workers.settings"),
    "package": ("packages/toolagent/src/toolagent/client", "import toolagent.testing"),
    "service": ("packages/service/src/toolagent_service/contracts", "import toolagent_service.agents.loop"),
    "engine": ("engine/registry", "import engine.calls"),
    "matching-is-apart": ("engine/registry/matching", "import engine.registry.export"),
    "concierge-only-reads": ("engine/concierge", "import engine.roles.provider"),
    "runtimes": ("engine/runtimes/process", "import engine.runtimes.http.exchange"),
    "docker": ("engine/runtimes/docker/building", "import engine.runtimes.docker.serving.runtime"),
    "making": ("engine/making/repositories", "import engine.making.gate"),
    "upkeep": ("engine/upkeep/sessions", "import engine.upkeep.removal.tasks"),
    "workflows": ("workflows/groups", "import workflows.calls.callbacks"),
    "workers": ("workers/state", "import workers.host.hosting"),
    "api": ("api/reading", "import api.routes"),
    "mcp": ("api/mcp/calls", "import api.mcp.sessions.rpc"),
    "activities": ("activities/agent_tools", "import activities.agents.opening"),
    "runtimes-know-no-store": ("engine/runtimes/process", "import sqlalchemy"),
    "engine-knows-no-frameworks": ("engine/disk", "import fastapi"),
    "workflows-see-no-engine": ("workflows/calls", "import engine.calls"),
    "activities-know-no-store": ("activities", "import engine.store.calls"),
    "api-reads-the-registry": ("api/views", "import engine.store"),
    "pure-core": ("packages/toolagent/src/toolagent/core", "import asyncio"),
}

LONGEST_CHAIN = 20
"""Modules: who reads one reads no more than so many others to know what it stands on."""


def _contracts() -> dict[str, str]:
    """The contracts' names by id."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))
    return {contract["id"]: contract["name"] for contract in project["tool"]["importlinter"]["contracts"]}


def _module(contract: str) -> str:
    """The module, in the folder of its breach, that breaks this contract."""
    return f"breach_of_{contract.replace('-', '_')}"


def _printed(tree: Path) -> str:
    """The output of the linter about a tree. It judges every contract."""
    linter = str(Path(sys.executable).with_name("lint-imports"))
    # The copy must win over the editable install of the real package.
    path = f"{tree / 'packages/toolagent/src'}:{tree / 'packages/service/src'}:{tree}"
    env = {"PYTHONPATH": path, "COLUMNS": "400", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    command = [linter, "--config", str(tree / "pyproject.toml"), "--no-cache", "--no-logo"]
    ran = subprocess.run(command, cwd=tree, env=env, check=False, capture_output=True, text=True)
    # Behind the verdict stands how many imports a contract leaves out.
    judged = {key for key, name in _contracts().items() if f"\n{name} KEPT" in ran.stdout or f"\n{name} BROKEN" in ran.stdout}
    assert judged == set(_contracts()), f"The linter did not judge every contract:\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def _broken(printed: str) -> dict[str, str]:
    """The broken contracts' ids, with the linter's output about each."""
    found = {
        key: re.search(rf"^{re.escape(name)}\n-+\n(.*?)(?=\n\n\n[^\n-].*\n---|\Z)", printed, re.MULTILINE | re.DOTALL)
        for key, name in _contracts().items()
    }
    return {key: match[1] for key, match in found.items() if match}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of our sources that a test may change."""
    for folder in SOURCES:
        shutil.copytree(HERE / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_has_an_example_that_breaks_it_and_every_example_a_contract() -> None:
    assert set(BREACHES) == set(_contracts()), "Add to BREACHES an import that breaks each contract."


def test_a_forbidden_import_breaks_exactly_its_contract(tree: Path) -> None:
    """All imports are added together: the linter's output names the modules that break each contract."""
    for contract, (folder, statement) in BREACHES.items():
        (tree / folder / f"{_module(contract)}.py").write_text(f'"""A breach."""\n\n{statement}\n', "utf-8")
    printed = _printed(tree)
    named = {contract: set(re.findall(r"\.(breach_of_\w+)", said)) for contract, said in _broken(printed).items()}
    assert named == {contract: {_module(contract)} for contract in BREACHES}, printed


def test_a_room_that_no_contract_names_breaks_that_of_the_rooms_around_it(tree: Path) -> None:
    for folder in (
        "engine",
        "engine/runtimes",
        "engine/runtimes/docker",
        "engine/making",
        "engine/upkeep",
        "workflows",
        "workers",
        "api",
        "api/mcp",
    ):
        (tree / folder / "breach.py").write_text('"""A breach."""\n', "utf-8")
    printed = _printed(tree)
    assert set(_broken(printed)) == {"engine", "runtimes", "docker", "making", "upkeep", "workflows", "workers", "api", "mcp"}, printed


def test_the_functions_of_every_role_have_their_place_in_the_contract_of_roles() -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))
    (layers,) = (one["layers"] for one in project["tool"]["importlinter"]["contracts"] if one["id"] == "activities")
    named = {name.strip() for layer in layers for name in layer.split("|")}
    unnamed = sorted(folder.name for folder in (HERE / "activities").glob("*_tools") if folder.name not in named)
    assert unnamed == [], "Each needs its place in the contract `Roles of agents` of pyproject.toml."


def test_no_chain_of_imports_is_longer_than_it_may_be() -> None:
    chain = longest_chain(HERE)
    assert len(chain) <= LONGEST_CHAIN, " → ".join(chain)
