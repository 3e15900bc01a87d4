"""The shipped catalog has no faults, and each shipped tool passes its own tests, in the environment of its lock."""

import asyncio
import subprocess
from pathlib import Path

import pytest
import uv

from engine.registry.formats import groups_json, registry_json, sources_json
from engine.registry.secret_vault import SecretRefusedError
from toolagent.contracts.sources import LocalSource
from toolagent.validation.schemas import issues_of

DATA = Path(__file__).parents[2] / "data"
PROJECTS = sorted(path.name for path in (DATA / "tools" / "local").iterdir())


class NoVault:
    """The shipped catalog holds no keys."""

    def keep(self, name: str, value: str) -> None:
        del value
        raise SecretRefusedError(name)


def test_the_catalog_files_are_without_fault() -> None:
    parsed = (
        registry_json.parse(DATA / "registry.json", NoVault()),
        sources_json.parse(DATA / "sources.json", NoVault()),
        groups_json.parse(DATA / "groups.json", NoVault()),
    )
    assert [fault for part in parsed for fault in part.faults] == []


def test_every_project_is_in_the_catalog() -> None:
    sources = sources_json.parse(DATA / "sources.json", NoVault()).entries
    folders = {source.host_dir for found in sources.values() for source in found if isinstance(source, LocalSource)}
    assert folders == {f"tools/local/{name}" for name in PROJECTS}
    assert set(registry_json.parse(DATA / "registry.json", NoVault()).entries) == set(sources)


def test_every_example_fits_its_schema() -> None:
    for manifest in registry_json.parse(DATA / "registry.json", NoVault()).entries.values():
        assert manifest.examples
        assert [
            issues_of(manifest.input_schema, example.input)
            for example in manifest.examples
            if issues_of(manifest.input_schema, example.input)
        ] == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PROJECTS)
async def test_a_tool_passes_its_own_tests(name: str) -> None:
    command = [
        uv.find_uv_bin(),
        "run",
        "--quiet",
        "--isolated",
        "--no-project",
        "--with-requirements",
        "requirements.lock",
        "--with",
        "pytest",
    ]
    process = await asyncio.create_subprocess_exec(
        *command,
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        cwd=DATA / "tools" / "local" / name,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
