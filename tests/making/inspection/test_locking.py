"""The dependencies of a project, however it declares them, become a lock with hashes and without addresses."""

import re
import time
from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from engine.making.failures import LockFailed, NotWanted
from engine.making.python_projects.preparing import Order, PythonProjects
from engine.making.python_sources.wanted import Wanted, declared_of, locked_of
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks, require_index
from engine.making.uv.runs import UvRuns
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.network import through
from engine.runtimes.environments.programs import Program
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.egress import Egress
from tests.runtimes.conftest import silent
from tests.scripts.index import PackageIndex, package_index, resolve
from toolagent.contracts.sources import ScriptLanguage

PROJECT = '[project]\nname = "x"\nversion = "1"\n'


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        for version in ("1.0", "1.5", "2.0"):
            index.add_wheel("leaf", version, "")
        index.add_wheel("server", "1.0", "")
        yield index


@pytest.fixture
def locks(tmp_path: Path, launcher: Launcher, sandbox: Sandboxing, index: PackageIndex) -> ProjectLocks:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    network = through(Egress(tmp_path / "state", (), resolve=resolve), trusted=True)
    return ProjectLocks(UvRuns(Executor(launcher, sandbox.sandbox), sandbox.environments.programs, Installer(indexes, network, 60.0)))


def wanted(folder: Path, files: Mapping[str, str]) -> Wanted:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tree, top = Tree.read(folder), PurePosixPath()
    lock = locked_of(tree, top)
    return lock.wanted if lock is not None else declared_of(tree, top)


async def locked(locks: ProjectLocks, tmp_path: Path, files: Mapping[str, str]) -> list[str]:
    lock = await locks.lock(wanted(tmp_path / "project", files), ("server",), tmp_path / "work")
    assert not (tmp_path / "work").is_dir()
    assert "://" not in lock
    assert lock.count("--hash=sha256:") >= lock.count("==")
    return sorted(re.findall(r"^[a-z]+==[0-9.]+", lock, re.MULTILINE))


@pytest.mark.parametrize(
    ("files", "packages"),
    [
        ({"requirements.txt": "leaf\n"}, ["leaf==2.0", "server==1.0"]),
        ({"requirements.txt": "-e .\n.\n--index-url https://example.com/simple\nleaf<2\nserver\n"}, ["leaf==1.5", "server==1.0"]),
        (
            {"requirements.txt": "-r requirements/base.txt\n", "requirements/base.txt": "leaf==1.0\n-i https://example.com\n"},
            ["leaf==1.0", "server==1.0"],
        ),
        ({"pyproject.toml": f'{PROJECT}dependencies = ["leaf<=1.5"]\n', "requirements.txt": "leaf==1.0\n"}, ["leaf==1.5", "server==1.0"]),
        ({"pyproject.toml": PROJECT}, ["server==1.0"]),
        (
            {"pyproject.toml": '[tool.poetry]\nname="x"\n[tool.poetry.dependencies]\npython = "^3.11"\nleaf = "^1.0"\n'},
            ["leaf==1.5", "server==1.0"],
        ),
        (
            {
                "pyproject.toml": '[tool.poetry.dependencies]\nleaf = "*"\n',
                "poetry.lock": '[[package]]\nname = "Leaf"\nversion = "1.0"\n[[package]]\nname = "unused"\nversion = "9"\n',
            },
            ["leaf==1.0", "server==1.0"],
        ),
    ],
)
async def test_each_way_to_say_it_is_locked(locks: ProjectLocks, tmp_path: Path, files: dict[str, str], packages: list[str]) -> None:
    assert await locked(locks, tmp_path, files) == packages


async def test_a_project_without_dependencies_is_locked_without_asking_anybody(locks: ProjectLocks, tmp_path: Path) -> None:
    blocked = tmp_path / "no-folder"
    blocked.touch()
    assert await locks.lock(Wanted(pins=("leaf==1.0",)), (), blocked / "work") == ""


async def test_a_lock_of_the_project_s_own_is_kept(locks: ProjectLocks, tmp_path: Path, index: PackageIndex) -> None:
    digest = index.add_wheel("leaf", "1.2", "")
    own = f"leaf==1.2 --hash={digest}\n"
    assert await locked(locks, tmp_path, {"requirements.lock": own}) == ["leaf==1.2", "server==1.0"]


async def test_a_lock_of_uv_is_kept(locks: ProjectLocks, tmp_path: Path, index: PackageIndex) -> None:
    digest = index.add_wheel("leaf", "1.2", "")
    registry = f"{index.url}/simple"
    uv_lock = f"""\
version = 1
requires-python = ">=3.11"

[[package]]
name = "leaf"
version = "1.2"
source = {{ registry = "{registry}" }}
wheels = [{{ url = "{index.url}/files/leaf-1.2-py3-none-any.whl", hash = "{digest}" }}]

[[package]]
name = "x"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "leaf" }}]

[package.metadata]
requires-dist = [{{ name = "leaf" }}]
"""
    project = f'{PROJECT}requires-python = ">=3.11"\ndependencies = ["leaf", "none; python_version < \'3\'"]\n'
    assert await locked(locks, tmp_path, {"pyproject.toml": project, "uv.lock": uv_lock}) == ["leaf==1.2", "server==1.0"]
    # uv would write it anew.
    stale = project.replace('"leaf"', '"leaf", "twig"')
    index.add_wheel("twig", "1.0", "")
    assert await locked(locks, tmp_path, {"pyproject.toml": stale, "uv.lock": uv_lock}) == ["leaf==2.0", "server==1.0", "twig==1.0"]


@pytest.mark.parametrize(
    "text",
    [
        "nowhere-to-be-found\n",
        "leaf>9\n",
        "leaf @ https://example.com/leaf.whl\n",
        "git+https://example.com/leaf\n",
        "./local\n",
        "-r other\n",
    ],
)
async def test_what_is_not_on_the_index_cannot_be_locked(locks: ProjectLocks, tmp_path: Path, text: str) -> None:
    with pytest.raises(LockFailed):
        await locks.lock(wanted(tmp_path / "project", {"requirements.txt": text}), ("server",), tmp_path / "work")
    assert not (tmp_path / "work").is_dir()


@pytest.mark.parametrize(
    "line",
    [
        "leaf @ https://example.com/leaf.whl --hash=sha256:00",
        "leaf@https://example.com/leaf.whl --hash=sha256:00",
        "--index-url https://example.com/simple",
        "--find-links https://example.com",
        "-f https://example.com",
        "-ihttps://example.com",
        "-e ../leaf",
        "-r https://example.com/requirements.txt",
        "leaf --config-settings=x=y",
        "# a comment goes on \\\n--index-url https://example.com/simple",
        "git+https://example.com/leaf",
        pytest.param(f"leaf ; {'(' * 3000}os_name == 'a'{')' * 3000}", id="deep"),
    ],
)
def test_what_names_another_place_is_refused_however_it_is_written(line: str) -> None:
    with pytest.raises(LockFailed):
        require_index(f"leaf==1.0 \\\n    --hash=sha256:00\n{line}\n", with_files=True)


def test_requirements_with_hashes_markers_and_comments_are_of_the_index() -> None:
    require_index("# what for\n\nleaf[a]>=1 ; python_version > '3' \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\nother  # why\n")
    require_index("-r base.txt\n-c pins.txt\n", with_files=True)
    with pytest.raises(LockFailed):
        require_index("-r base.txt\n")


async def test_what_is_not_pinned_has_to_be_old_enough(locks: ProjectLocks, tmp_path: Path) -> None:
    """The index tells no dates, so no package is known to be old."""
    then = datetime(2026, 1, 1, tzinfo=UTC)
    assert "leaf==1.0" in await locks.lock(Wanted(("leaf",), pins=("leaf==1.0",)), (), tmp_path / "work", then)
    with pytest.raises(LockFailed):
        await locks.lock(Wanted(("leaf", "server"), pins=("leaf==1.0",)), (), tmp_path / "work", then)


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": f'{PROJECT}dependencies = ["leaf"]\n[tool.uv.sources]\nleaf = {{ path = "leaf" }}\n'},
        {"pyproject.toml": '[tool.poetry.dependencies]\nleaf = { git = "https://example.com/leaf" }\n'},
        {"pyproject.toml": '[tool.poetry.dependencies]\nleaf = "^1 || ^2"\n'},
        {"pyproject.toml": "[tool.poetry.dependencies]\nleaf = 1\n"},
        {"setup.py": "raise SystemExit"},
    ],
)
def test_what_cannot_be_had_here_is_said_before_anything_is_fetched(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(NotWanted):
        wanted(tmp_path, files)


@pytest.mark.parametrize(
    ("version", "means"),
    [
        ("^1.2.3", "leaf<2,>=1.2.3"),
        ("^0.2.3", "leaf<0.3,>=0.2.3"),
        ("^0.0.3", "leaf<0.0.4,>=0.0.3"),
        ("^0", "leaf<1,>=0"),
        ("~1.2.3", "leaf<1.3,>=1.2.3"),
        ("~1", "leaf<2,>=1"),
        ("1.2", "leaf==1.2"),
        (">=1.0, <2", "leaf<2,>=1.0"),
        ("1.*", "leaf==1.*"),
        ("*", "leaf"),
    ],
)
def test_versions_of_poetry_mean_the_same(tmp_path: Path, version: str, means: str) -> None:
    assert wanted(tmp_path, {"pyproject.toml": f'[tool.poetry.dependencies]\nleaf = "{version}"\n'}).lines == (means,)


@pytest.mark.parametrize("line", ["leaf" + " --hash=sha256:00" * 20_000 + " -", "leaf" + " " * 200_000 + "-"])
def test_a_long_line_is_judged_in_time_that_grows_as_it_does(line: str) -> None:
    begin = time.process_time()
    with pytest.raises(LockFailed):
        require_index(line)
    assert time.process_time() - begin < 1


async def test_what_could_not_be_installed_is_not_tried_again_for_what_runs_with_something_older(
    tmp_path: Path, projects: PythonProjects
) -> None:
    (tmp_path / "Pipfile").write_text('[packages]\ncolorama = "*"\n')
    (tmp_path / "Pipfile.lock").write_text('{"default": {"colorama": {"version": "==0.4.99999"}}}')
    order, said = Order(tmp_path, "", tmp_path / "work", "notes", needs_package=False), list[str]()
    for _ in range(2):
        projects.begin()
        said.clear()
        prepared = await projects.prepare(order, said.append)
        assert "versions of Pipfile.lock" in prepared.notes[0]
    assert [line.rpartition(", ")[2] for line in said if line.startswith("installing what the project")] == ["what the project declares)"]


async def test_major_versions_of_a_lock_give_way_where_it_does_not_run_with_them(tmp_path: Path, projects: PythonProjects) -> None:
    (tmp_path / "Pipfile").write_text('[packages]\ncolorama = "*"\n')
    (tmp_path / "Pipfile.lock").write_text('{"default": {"colorama": {"version": "==0.3.99999"}}}')
    order, said = Order(tmp_path, "", tmp_path / "work", "notes", needs_package=False), list[str]()
    for instead in ("something else than the major versions of Pipfile.lock", ""):
        projects.begin()
        said.append((await projects.prepare(order, silent)).notes[-1].rpartition(" and ")[2])
        assert projects.older_for("TypeError: it has no argument 'hidden'") == instead
    assert said == ["major versions of Pipfile.lock.", "what the project declares."]


@pytest.mark.parametrize(
    ("files", "again"),
    [
        ({"requirements.txt": "colorama==0.4.5\n"}, ["colorama==0.4.5"]),
        (
            {"Pipfile": '[packages]\ncolorama = "*"\n', "Pipfile.lock": '{"default": {"colorama": {"version": "==0.4.5"}}}'},
            ["colorama"],
        ),
    ],
    ids=("declared", "locked"),
)
async def test_what_could_not_be_installed_is_tried_again_once_something_is_held_unless_a_lock_says_all_of_it(
    tmp_path: Path, projects: PythonProjects, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], again: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said, own = list[str](), ProjectLocks.lock

    async def lock(
        self: ProjectLocks,
        wanted: Wanted,
        besides: Sequence[str],
        into: Path,
        not_after: datetime | None = None,
        python: Program | None = None,
    ) -> str:
        said.append(wanted.lines[0])
        if "==" in wanted.lines[0] and not besides:
            raise LockFailed("It cannot be built.")
        return await own(self, wanted, (), into, not_after, python)

    monkeypatch.setattr(ProjectLocks, "lock", lock)
    order = Order(tmp_path, "", tmp_path / "work", "notes", needs_package=False)
    is_held = False
    while not is_held:
        projects.begin()
        await projects.prepare(order, silent)
        is_held = projects.older_for("No module named 'pkg_resources'").startswith("setuptools")
    said.clear()
    projects.begin()
    await projects.prepare(order, silent)
    assert said == again
