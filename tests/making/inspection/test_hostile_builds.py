"""Hostile build backends of repositories: an attack is refused with its reason, or has no effect."""

import asyncio
import io
import json
import shutil
import tarfile
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.making.building.builds import Job, Place
from engine.making.building.imported_packages import ImportedPackages
from engine.making.failures import LockFailed
from engine.making.openapi.tools import Described
from engine.making.programs.building import ProgramBuilder
from engine.making.programs.reading import Readable, read_programs
from engine.making.python_projects.installs import ProjectInstalls
from engine.making.python_projects.preparing import Order, PythonProjects
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.registry.archives import packed
from engine.runtimes.environments.execution import Executor
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.processes import Launcher
from tests.parts import installer_of, machine_indexes
from tests.runtimes.conftest import silent
from toolagent_service.contracts.plans import ProgramBuild

SECRET = "the secret of this host"  # noqa: S105 - a text to look for
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import json, os, socket, sys, time, zipfile
from pathlib import Path

SITE, ELSEWHERE = Path.cwd().parent / "site", Path({elsewhere!r})
ABOUT = "Metadata-Version: 2.1\\nName: notes\\nVersion: 1.0\\n"
files = {{"notes/__init__.py": "", "notes/built_by.py": "%d.%d" % sys.version_info[:2]}}

def attack():
    global ABOUT
{attack}

def build_wheel(directory, settings=None, metadata=None):
    attack()
    about = {{"METADATA": ABOUT, "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n", "RECORD": ""}}
    with zipfile.ZipFile(Path(directory) / "notes-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {{**files, **{{f"notes-1.0.dist-info/{{name}}": text for name, text in about.items()}}}}.items():
            wheel.writestr(name, text)
    return "notes-1.0-py3-none-any.whl"
"""


@pytest.fixture
def elsewhere() -> Generator[Path]:
    """A folder of this host with a package. In the sandbox, the same path is another folder."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    (folder / "notes-1.0.dist-info").mkdir()
    (folder / "notes-1.0.dist-info/METADATA").write_text("Name: notes\nVersion: 1.0\n")
    (folder / "secret.txt").write_text(SECRET)
    yield folder
    shutil.rmtree(folder)


def runs_of(launcher: Launcher, sandbox: Sandboxing, timeout_s: float) -> UvRuns:
    programs = sandbox.environments.programs
    installer = installer_of(machine_indexes(programs), sandbox.egress, timeout_s)
    return UvRuns(Executor(launcher, sandbox.sandbox), programs, installer)


@pytest.fixture
def runs(launcher: Launcher, sandbox: Sandboxing) -> UvRuns:
    return runs_of(launcher, sandbox, 60)


def repository(folder: Path, elsewhere: Path, attack: str, more: str = "") -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT + more)
    lines = "\n".join(f"    {line}" for line in (attack.strip() or "pass").splitlines())
    (folder / "backend.py").write_text(BACKEND.format(elsewhere=str(elsewhere), attack=lines))
    return folder


REFUSED = {
    "a link in the place of what is installed": ('SITE.rename("aside"); ELSEWHERE.mkdir(); SITE.symlink_to(ELSEWHERE)', "put a link"),
    "two packages": ('(SITE / "other-1.dist-info").mkdir()', "gave 2 packages"),
    "more than a tool may hold": ('with open(SITE / "huge", "wb") as huge: huge.truncate(1 << 29)', "more than"),
    "too many dependencies": ('ABOUT += "Requires-Dist: a\\n" * 100_000', "depends on 100,000 others"),
    "it hangs": ("time.sleep(3600)", "took too long"),
    "it fills the disk": ('for n in range(3000): open(f"f{n}", "wb").write(b"x" * 1048576)', "cannot be built"),
    "it forks": ("held = []\nwhile True:\n    if not os.fork(): time.sleep(3600)", "cannot be built"),
    "it ends whatever it can": ("import signal\nos.kill(-1, signal.SIGKILL)", "cannot be built"),
}  # fmt: skip
ENDED_FOR_THEIR_TIME = ("it hangs", "it forks")


TAKES_TOO_MUCH = ("it fills the disk", "it forks")
"""What its sandbox ends, as tests/scripts/test_bad_builds.py shows of another build."""


@pytest.mark.parametrize("attack", [pytest.param(attack, marks=pytest.mark.long if attack in TAKES_TOO_MUCH else ()) for attack in REFUSED])
async def test_a_build_that_attacks_is_refused_with_its_reason(
    tmp_path: Path, elsewhere: Path, launcher: Launcher, sandbox: Sandboxing, state: Path, attack: str
) -> None:
    code, why = REFUSED[attack]
    runs = runs_of(launcher, sandbox, 6 if attack in ENDED_FOR_THEIR_TIME else 60)
    origin, work, site = repository(tmp_path / "origin", elsewhere, code), state / "work", state / "site"
    begun = time.monotonic()
    with pytest.raises(LockFailed, match=why):
        await ProjectInstalls(runs).install(origin, "", work, site, runs.programs.python)
    assert time.monotonic() - begun < 60
    assert not work.exists()
    assert not [path for path in (site.rglob("*") if site.is_dir() else ()) if path.name == "secret.txt"]


LOOKS = """
import subprocess
seen = []
for path in (ELSEWHERE / "secret.txt", Path("/etc/shadow"), Path.home().parent.parent / "origin"):
    try: seen.append(path.read_text())
    except OSError: pass
for address in (("127.0.0.1", {port}), ("1.1.1.1", 53)):
    try: socket.create_connection(address, timeout=2).close(); seen.append(str(address))
    except OSError: pass
seen += [value for name, value in os.environ.items() if "SECRET" in name]
if not os.fork():
    os.setsid(); [os.dup2(os.open("/dev/null", os.O_RDWR), n) for n in (0, 1, 2)]; os.closerange(3, 100)
    os.execv("/bin/sleep", ["/bin/sleep", "3607"])

os.mkfifo(SITE / "pipe")
(SITE / "out").symlink_to("/etc/passwd")
(SITE / "folder").symlink_to(ELSEWHERE)
(SITE / "notes-1.0.dist-info").mkdir()
(SITE / "notes-1.0.dist-info/entry_points.txt").symlink_to(ELSEWHERE / "secret.txt")
files["notes/seen.json"] = json.dumps(seen)
"""


async def test_a_build_sees_nothing_of_this_host_and_leaves_no_link_pipe_or_process(
    tmp_path: Path, elsewhere: Path, runs: UvRuns, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_AGENT_SECRET_KEY", SECRET)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        origin, site = repository(tmp_path / "origin", elsewhere, LOOKS.format(port=port)), state / "site"
        installed = await ProjectInstalls(runs).install(origin, "", state / "work", site, runs.programs.python)
    assert (installed.name, installed.scripts) == ("notes", {})
    assert (site / "notes/seen.json").read_text() == "[]"
    found = await asyncio.to_thread(files_below, site)
    assert {"METADATA", "seen.json"} <= {path.name for path in found}
    assert not [path for path in found if path.is_symlink() or not path.is_file()]
    assert not await asyncio.to_thread(still_asleep)


def files_below(folder: Path) -> list[Path]:
    """Everything but folders: also links and pipes."""
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def still_asleep() -> list[Path]:
    return [one for one in Path("/proc").glob("[0-9]*/cmdline") if b"3607" in read(one).split(b"\0")]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


async def test_what_is_packed_is_what_was_built_with_the_python_that_was_chosen(
    tmp_path: Path, elsewhere: Path, launcher: Launcher, sandbox: Sandboxing, state: Path
) -> None:
    """No Python can have these versions, so the first one is chosen after the others, with looser versions."""
    runs = runs_of(launcher, sandbox, 300)
    if len(runs.programs.pythons) < 2:
        pytest.skip("This machine has one Python only.")
    (first, *_, last) = sorted(runs.programs.pythons, key=lambda minor: runs.programs.pythons[minor] != runs.programs.python)
    more = '\n[project]\nname = "notes"\nversion = "1.0"\ndependencies = ["colorama==0.4.99999"]\n'
    attack = f'if sys.version_info[:2] == {tuple(map(int, last.split(".")))!r}: raise SystemExit("not with this one")'
    origin = repository(tmp_path / "origin", elsewhere, attack, more)
    projects = PythonProjects(runs, ProjectLocks(runs), sandbox.environments)
    prepared = await projects.prepare(Order(origin, "", state / "work", "notes"), silent)
    assert prepared.installed is not None
    assert (prepared.installed.site / "notes/built_by.py").read_text() == first
    assert "pins taken away" in prepared.notes[-1]


async def test_what_is_installed_is_compiled_as_far_as_it_can_be(tmp_path: Path, elsewhere: Path, runs: UvRuns, state: Path) -> None:
    origin, site = repository(tmp_path / "origin", elsewhere, 'files["notes/broken.py"] = "def"'), state / "site"
    await ProjectInstalls(runs).install(origin, "", state / "work", site, runs.programs.python)
    (compiled,) = (site / "notes/__pycache__").glob("built_by.*.pyc")
    with tarfile.open(fileobj=io.BytesIO(packed(site))) as kept:
        assert f"notes/__pycache__/{compiled.name}" in kept.getnames()
    assert (site / "notes/broken.py").is_file()


NAMES = """
files["notes/__init__.py"] = "def main():\\n import argparse\\n argparse.ArgumentParser().parse_args()\\n"
names = ["good", "sp ace", "quo\\"te", "-dash", "new\\x0bline", "x" * 200]
lines = [f"{name} = notes:main" for name in names] + ["extras = notes:main [colour]"]
files["notes-1.0.dist-info/entry_points.txt"] = "[console_scripts]\\n" + "\\n".join(lines)
"""


async def test_programs_whose_names_are_none_are_left_out_with_their_reason(
    tmp_path: Path,
    elsewhere: Path,
    runs: UvRuns,
    sandbox: Sandboxing,
    launcher: Launcher,
    place: Place,
    state: Path,
    imported: ImportedPackages,
) -> None:
    origin = repository(tmp_path / "origin", elsewhere, NAMES)
    projects = PythonProjects(runs, ProjectLocks(runs), sandbox.environments)
    executor = Executor(launcher, sandbox.sandbox)
    built = await ProgramBuilder(projects, executor, imported).build(ProgramBuild(), Job(origin, Described("notes"), place, silent))
    assert [entry.manifest.name for entry in built.candidate.entries] == ["extras", "good"]
    assert {one.operation[:8] for one in built.left_out} == {"sp ace", 'quo"te', "-dash", "new\x0bline", "x" * 8}
    assert all("is named with letters" in one.reason for one in built.left_out)
    assert json.loads((place.folder / "commands.json").read_text())["run_extras"]["target"] == "notes:main"

    prepared = await projects.prepare(Order(origin, "", state / "work", "notes"), silent)
    unfit = {"zero": "notes:ma\0in", "command": "notes:main;rm", "module": "notes", "file": "/etc/passwd:main"}
    commands, left = await read_programs(Readable(unfit, place.folder, prepared.environment, state / "reading"), executor)
    assert (commands, [one.operation for one in left]) == ((), sorted(unfit))
