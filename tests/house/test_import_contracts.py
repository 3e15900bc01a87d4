"""Each import contract of pyproject.toml is seen to break, by one import that it forbids."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
    "runtimes-know-no-store": ("engine/runtimes/process", "import sqlalchemy"),
    "engine-knows-no-frameworks": ("engine/disk", "import fastapi"),
    "workflows-see-no-engine": ("workflows/calls", "import engine.calls"),
    "activities-know-no-store": ("activities", "import engine.store.calls"),
    "api-reads-the-registry": ("api/views", "import engine.store"),
    "pure-core": ("packages/toolagent/src/toolagent/core", "import asyncio"),
}


def _contracts() -> dict[str, str]:
    """The contracts' names by id."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))
    return {contract["id"]: contract["name"] for contract in project["tool"]["importlinter"]["contracts"]}


def _broken(tree: Path) -> tuple[set[str], str]:
    """The ids of the contracts that a tree breaks, and what the linter printed."""
    linter = str(Path(sys.executable).with_name("lint-imports"))
    # The copy must win over the editable install of the real package.
    path = f"{tree / 'packages/toolagent/src'}:{tree / 'packages/service/src'}:{tree}"
    env = {"PYTHONPATH": path, "COLUMNS": "400", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    command = [linter, "--config", str(tree / "pyproject.toml"), "--no-cache", "--no-logo"]
    ran = subprocess.run(command, cwd=tree, env=env, check=False, capture_output=True, text=True)
    # Behind the verdict stands how many imports a contract leaves out.
    lines = tuple(line.strip() for line in ran.stdout.splitlines())
    verdicts = {
        key: verdict
        for key, name in _contracts().items()
        for verdict in ("KEPT", "BROKEN")
        if any(line.startswith(f"{name} {verdict}") for line in lines)
    }
    assert set(verdicts) == set(_contracts()), f"The linter did not judge every contract:\n{ran.stdout}{ran.stderr}"
    return {key for key, verdict in verdicts.items() if verdict == "BROKEN"}, ran.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of our sources that a test may spoil."""
    for folder in SOURCES:
        shutil.copytree(HERE / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_has_an_example_that_breaks_it_and_every_example_a_contract() -> None:
    assert set(BREACHES) == set(_contracts())


@pytest.mark.parametrize("contract", sorted(_contracts()))
def test_a_forbidden_import_breaks_exactly_its_contract(contract: str, tree: Path) -> None:
    assert contract in BREACHES, f"Add to BREACHES an import that breaks {contract!r}."
    folder, statement = BREACHES[contract]
    (tree / folder / "breach.py").write_text(f'"""A breach."""\n\n{statement}\n', "utf-8")
    broken, printed = _broken(tree)
    assert broken == {contract}, printed


def test_a_room_that_no_contract_names_breaks_that_of_the_rooms_around_it(tree: Path) -> None:
    for folder in ("engine", "engine/runtimes", "engine/runtimes/docker", "engine/making", "engine/upkeep", "workflows", "workers", "api"):
        (tree / folder / "breach.py").write_text('"""A breach."""\n', "utf-8")
    broken, printed = _broken(tree)
    assert broken == {"engine", "runtimes", "docker", "making", "upkeep", "workflows", "workers", "api"}, printed
