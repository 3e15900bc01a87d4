"""The reason of a failed build names what no other way can mend."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from pydantic import JsonValue, ValidationError

from engine.making.build_ways import WayBuilder, WaysParts
from engine.making.building.builds import Built
from engine.making.building.imported_packages import ImportedPackages
from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.index_addresses import addresses_from
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from engine.making.failures import BuildFailed, LockFailed
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.python_sources.variables import Variables
from engine.making.python_sources.wanted import Wanted
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.outages import is_outage
from engine.making.uv.runs import UvRuns
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.programs import Program
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings, Sandboxing
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.processes import Launcher
from engine.runtimes.runtime import Progress
from tests.making.inspection.conftest import written
from tests.parts import installer_of, machine_indexes
from tests.runtimes.conftest import silent
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.dependency_policy import DependencyPolicy
from toolagent_service.contracts.making_steps import BuildStep
from toolagent_service.contracts.plans import McpBuild, ProgramBuild, ToolFileBuild

STEP = BuildStep(
    task_id="create_12345678", spec=GithubDeploy(repo_url="https://example.com/a/b", tool_name="notes"), plan=ProgramBuild(project="")
)


def older(told: str) -> str:
    return "a Python older than 3.11"


class SecondTimeUnavailable(WayBuilder):
    """A builder whose first build fails, and whose second one finds the packages unavailable."""

    times = 0

    async def _built(self, step: BuildStep, variables: Variables, progress: Progress) -> Built:  # noqa: ARG002 - whatever it is given
        self.times += 1
        if self.times == 1:
            self._projects.older_for = older
            raise BuildFailed("the first failure")
        raise ScriptFailure(ScriptErrorKind.DEPENDENCY, "the second failure")


class Refused(WayBuilder):
    """A builder that refuses its repository."""

    async def _built(self, step: BuildStep, variables: Variables, progress: Progress) -> Built:  # noqa: ARG002 - whatever it is given
        raise refusal()


def refusal() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        ToolManifest(tool_id="notes", name="half \ud800 a character")
    return caught.value


@pytest.fixture
async def ways(
    launcher: Launcher, sandbox: Sandboxing, state: Path, gate: DependencyGate
) -> AsyncGenerator[tuple[WaysParts, RuntimeParts]]:
    programs, executor = sandbox.environments.programs, Executor(launcher, sandbox.sandbox)
    installer = installer_of(machine_indexes(programs), sandbox.egress)
    runs, local = UvRuns(executor, programs, installer), LocalSettings(state, state, state, start_timeout_s=1.0, stop_grace_s=1.0)
    http = HttpExchange()
    parts = RuntimeParts(local, launcher, sandbox, http, dict[str, str]().get, {})
    yield WaysParts(executor, runs, ProjectLocks(runs), NpmRuns(executor, programs, installer), gate), parts
    await http.aclose()


async def test_what_a_contract_refuses_is_why_nothing_was_built(tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path) -> None:
    (tmp_path / "repository").mkdir()
    with pytest.raises(BuildFailed, match="What the repository says of itself cannot be used"):
        await Refused(*ways, state / "create_12345678", tmp_path / "repository").build(STEP, silent)


BACKEND = """
import zipfile
from dataclasses import replace
from pathlib import Path

def build_wheel(directory, settings=None, metadata=None):
    files = {{
        "notes.py": "from {package} import {name}\\n\\ndef main():\\n    import argparse\\n    argparse.ArgumentParser().parse_args()\\n",
        "notes-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: notes\\nVersion: 1.0\\n{requires}",
        "notes-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "notes-1.0.dist-info/entry_points.txt": "[console_scripts]\\nnotes = notes:main\\n",
        "notes-1.0.dist-info/RECORD": "",
    }}
    with zipfile.ZipFile(Path(directory) / "notes-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return "notes-1.0-py3-none-any.whl"
"""


def project(folder: Path, name: str, package: str = "") -> Path:
    """A program that takes `name` from this package, which it depends on, or from Python's own `collections`."""
    folder.mkdir()
    depends = f"dependencies = [{package!r}]\n" if package else ""
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(f'{system}[project]\nname = "notes"\nversion = "1.0"\n{depends}')
    requires = f"Requires-Dist: {package}\\n" if package else ""
    (folder / "backend.py").write_text(BACKEND.format(name=name, package=package or "collections", requires=requires))
    return folder


async def test_what_its_python_is_too_new_for_is_built_with_an_older_one(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], sandbox: Sandboxing, state: Path
) -> None:
    if "3.9" not in sandbox.environments.programs.pythons:
        pytest.skip("This machine has no Python of before 3.10.")
    origin = project(tmp_path / "origin", "Mapping")
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(STEP, silent)
    assert [entry.manifest.tool_id for entry in built.candidate.entries] == ["notes"]
    assert "so a Python older than 3.11 was taken" in built.notes[0]
    assert "cannot import name 'Mapping' from 'collections'" in built.notes[0]


async def test_what_runs_with_none_is_told_as_with_the_first(tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path) -> None:
    origin = project(tmp_path / "origin", "NeverThere")
    with pytest.raises(BuildFailed, match="cannot import name 'NeverThere'") as failed:
        await WayBuilder(*ways, state / "create_12345678", origin).build(STEP, silent)
    assert not is_outage(failed.value)


async def test_a_c_header_that_a_build_misses_is_told_with_its_package(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    origin = project(tmp_path / "origin", "Mapping")
    fails = 'import sys\n\ndef build_wheel(*_):\n    sys.exit("x.c:1:10: fatal error: libpq-fe.h: No such file or directory")\n'
    (origin / "backend.py").write_text(fails)
    with pytest.raises(BuildFailed, match=r"The C header libpq-fe\.h is not on this host\. Install libpq-dev"):
        await WayBuilder(*ways, state / "create_12345678", origin).build(STEP, silent)


SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("notes")

@server.tool()
def add(a: int, b: int) -> int:
    "Adds."
    return a + b

server.run()
"""


async def test_a_program_that_is_older_than_the_newest_release_of_what_it_depends_on_gets_one_of_before(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    """It takes from click what click 8 has no more."""
    origin = project(tmp_path / "origin", "get_terminal_size", "click")
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(STEP, silent)
    assert [entry.manifest.tool_id for entry in built.candidate.entries] == ["notes"]
    assert "so click<8 was taken" in built.notes[0]
    assert "\nclick==7." in "\n" + (built.folders["notes"] / "requirements.lock").read_text()


@pytest.mark.long
async def test_a_server_that_is_older_than_the_newest_release_of_what_it_depends_on_gets_one_of_before(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    """Its lower bound permits mcp 2, which has no FastMCP."""
    (tmp_path / "origin").mkdir()
    (tmp_path / "origin/server.py").write_text(SERVER)
    (tmp_path / "origin/requirements.txt").write_text("mcp>=1.2\n")
    step = STEP.model_copy(update={"plan": McpBuild(module="server.py")})
    slow = replace(ways[1], local=replace(ways[1].local, start_timeout_s=30.0))
    built = await WayBuilder(ways[0], slow, state / "create_12345678", tmp_path / "origin").build(step, silent)
    assert [entry.manifest.name for entry in built.candidate.entries] == ["add"]
    assert "so mcp<2 was taken" in built.notes[0]


async def test_the_first_failure_is_told_also_where_what_is_older_cannot_be_installed(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    (tmp_path / "repository").mkdir()
    with pytest.raises(BuildFailed, match="the first failure"):
        await SecondTimeUnavailable(*ways, state / "create_12345678", tmp_path / "repository").build(STEP, silent)


HANDLER: JsonValue = {"type": "external-script", "scriptPath": "x.py", "language": "python"}
TOOL_FILE: dict[str, JsonValue] = {"toolId": "x", "displayName": "X", "description": "x", "version": "1.0.0", "handler": HANDLER}


async def test_a_script_that_says_nothing_has_what_it_imports_locked_beside_it(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    origin = written(tmp_path / "origin", {"x.tool.json": json.dumps(TOOL_FILE), "x.py": "import colorama\nimport my_own\n"})
    step = STEP.model_copy(update={"plan": ToolFileBuild(paths=("x.tool.json",))})
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(step, silent)
    assert (built.folders["notes"] / "requirements.lock").read_text().startswith("colorama==")
    assert not (origin / "requirements.lock").exists()
    assert "so what it imports was installed: colorama." in built.notes[0]
    assert "It imports my_own, and of which package is not certain." in built.notes[1]


class OnlyColorama(ProjectLocks):
    """Locks of an index with only this package; counts them."""

    made = 0

    async def lock(
        self, wanted: Wanted, besides: Sequence[str], into: Path, not_after: datetime | None = None, python: Program | None = None
    ) -> str:
        if wanted.lines and wanted.lines != ("colorama",):
            raise LockFailed("The index has no such package.")
        self.made += 1
        return await super().lock(wanted, besides, into, not_after, python)


async def test_an_import_that_cannot_be_had_is_told_and_scripts_that_import_the_same_share_a_lock(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    files: dict[str, str] = {}
    for name, package in (("x", "colorama"), ("y", "colorama"), ("z", "yaml")):
        file = TOOL_FILE | {"toolId": name, "handler": {"type": "external-script", "scriptPath": f"{name}.py", "language": "python"}}
        files |= {f"{name}.tool.json": json.dumps(file), f"{name}.py": f"import {package}\n"}
    origin = written(tmp_path / "origin", files)
    locks = OnlyColorama(ways[0].runs)
    step = STEP.model_copy(update={"plan": ToolFileBuild(paths=("x.tool.json", "y.tool.json", "z.tool.json"))})
    built = await WayBuilder(replace(ways[0], locks=locks), ways[1], state / "create_12345678", origin).build(step, silent)
    assert locks.made == 1
    assert built.folders["notes_x"] == built.folders["notes_y"]
    assert (built.folders["notes_y"] / "requirements.lock").exists()
    assert built.folders["notes_z"] == origin
    assert built.notes[-1] == "What is imported by notes_z was not installed: The index has no such package."
    lock, notes = await ImportedPackages(ways[0].gate, locks, tmp_path / "work").lock_of(origin, ["z.py"])
    assert (lock, notes) == ("", ("What is imported by z.py was not installed: The index has no such package.",))


async def test_scripts_of_a_folder_become_tools_with_what_they_import(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    text = "import argparse\nimport colorama\nasked = argparse.ArgumentParser(description='Greets.').parse_args()\n"
    origin = written(tmp_path / "origin", {"here/greet.py": text, "here/count.py": text})
    plan = ProgramBuild(project="here", programs=("count", "greet"), are_files=True)
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(STEP.model_copy(update={"plan": plan}), silent)
    assert [entry.manifest.tool_id for entry in built.candidate.entries] == ["notes_count", "notes_greet"]
    assert not built.left_out
    assert "what it imports was installed: colorama." in built.notes[0]


def ran(folder: Path, script: str) -> dict[str, JsonValue]:
    done = subprocess.run([sys.executable, script], cwd=folder, input="{}", capture_output=True, text=True, timeout=30, check=True)
    return json.loads(done.stdout)


async def test_scripts_find_the_modules_of_a_folder_above_theirs_and_other_folders_with_scripts_are_told(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    text = "import argparse\nfrom {} import words\nargparse.ArgumentParser(description=words.TEXT).parse_args()\n"
    files = {"tools/text/greet.py": text.format("speech"), "tools/text/count.py": text.format("speech"), "speech/__init__.py": ""}
    files |= {"speech/words.py": "TEXT = 'Greets.'\n\ndef colour():\n    import colorama\n", "other/more.py": text.format("speech")}
    origin = written(tmp_path / "origin", files)
    plan = ProgramBuild(project="tools/text", programs=("count", "greet"), are_files=True)
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(STEP.model_copy(update={"plan": plan}), silent)
    assert [entry.manifest.description for entry in built.candidate.entries] == ["Greets."] * 2
    ended = await asyncio.to_thread(ran, built.folders["notes_greet"], "run_greet.py")
    assert ended["exit_code"] == 0, ended
    assert "what it imports was installed: colorama." in built.notes[0]
    assert [(one.operation, "`path`" in one.reason) for one in built.left_out] == [("other", True)]


async def test_scripts_are_packed_alone_if_the_folder_from_which_one_of_them_imports_is_too_large(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    text = "import argparse\nargparse.ArgumentParser(description='Greets.').parse_args()\n"
    origin = written(tmp_path / "origin", {"config.py": "", "here/greet.py": text, "here/count.py": f"import config\n{text}"})
    with (origin / "large.bin").open("wb") as large:
        large.truncate(49 << 20)
    plan = ProgramBuild(project="here", programs=("count", "greet"), are_files=True)
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(STEP.model_copy(update={"plan": plan}), silent)
    assert [entry.manifest.description for entry in built.candidate.entries] == ["Greets."]
    assert "With large.bin there are more than 48 MiB" in built.notes[0]


async def test_a_well_known_package_that_is_imported_and_not_declared_is_installed_too(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path
) -> None:
    text = "import argparse\nimport {}\nasked = argparse.ArgumentParser(description='Greets.').parse_args()\n"
    plan = ProgramBuild(project="", programs=("greet",), are_files=True)
    step = STEP.model_copy(update={"plan": plan})
    origin = written(tmp_path / "origin", {"greet.py": text.format("yaml"), "requirements.txt": "colorama\n"})
    told: list[str] = []
    built = await WayBuilder(*ways, state / "create_12345678", origin).build(step, told.append)
    assert [entry.manifest.tool_id for entry in built.candidate.entries] == ["notes"]
    assert "so pyyaml too (imported and not declared) was taken" in built.notes[0]
    assert "it does not run; trying pyyaml too (imported and not declared)" in told
    other = written(tmp_path / "other", {"greet.py": text.format("not_well_known"), "requirements.txt": "colorama\n"})
    with pytest.raises(BuildFailed, match=r"No module named 'not_well_known'.* have it declare the package of that module\."):
        await WayBuilder(*ways, state / "create_12345679", other).build(step, silent)


async def test_a_package_that_the_policy_denies_is_said_to_be_denied(
    tmp_path: Path, ways: tuple[WaysParts, RuntimeParts], state: Path, sandbox: Sandboxing
) -> None:
    index = SimpleIndex(addresses_from(machine_indexes(sandbox.environments.programs)))
    denying = DependencyGate(DependencyPolicy(deny=("pyyaml",)), index, PopularPackages.of(("pyyaml yaml",)))
    origin = written(tmp_path / "origin", {"greet.py": "import yaml\n", "requirements.txt": "colorama\n"})
    step = STEP.model_copy(update={"plan": ProgramBuild(project="", programs=("greet",), are_files=True)})
    with pytest.raises(BuildFailed, match=r"It imports yaml, .* does not let tools depend on 'pyyaml'") as failed:
        await WayBuilder(replace(ways[0], gate=denying), ways[1], state / "create_12345678", origin).build(step, silent)
    assert "have it declare" not in failed.value.message
    await index.aclose()
