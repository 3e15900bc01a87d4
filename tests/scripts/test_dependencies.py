"""The dependencies of a script are installed once, in the sandbox, from the package index only."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import uv

from engine.runtimes.environments.dependencies import Script, dependencies_of
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.network import through
from engine.runtimes.environments.programs import Program, Programs
from engine.runtimes.sandbox.egress import Egress
from tests.parts import installer_of
from tests.scripts.harness import IDENTITY, Scripts, script_service
from tests.scripts.index import PackageIndex, package_index, resolve
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import ScriptLanguage

USES = "import json, leaf\nprint(json.dumps(leaf.value))\n"


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        index.add_wheel("leaf", "1.0", "value = 1")
        index.add_wheel("leaf", "2.0", "value = 2")
        yield index


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, index: PackageIndex) -> AsyncGenerator[Scripts]:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    state = tmp_path / "state"
    egress = Egress(state, (), IDENTITY, resolve=resolve)
    installer = Installer(indexes, through(egress, trusted=True), timeout_s=60)
    async with script_service(state, root, state / "environments", installer=installer, network=through(egress)) as scripts:
        yield scripts


def make_writable(folder: Path) -> None:
    for inside, _, _ in os.walk(folder):
        Path(inside).chmod(0o755)


def is_there(path: str) -> bool:
    return Path(path).exists()


def made_environments(scripts: Scripts) -> list[str]:
    return [path.name for path in (scripts.state / "environments").iterdir() if path.suffix == ".json"]


async def dependency_failure(scripts: Scripts, path: str = "a/main.py", language: ScriptLanguage = ScriptLanguage.PYTHON) -> ScriptFailure:
    with pytest.raises(ScriptFailure) as caught:
        await scripts.run(path, language=language)
    assert (caught.value.kind, caught.value.error_type) == (ScriptErrorKind.DEPENDENCY, ErrorType.DEPENDENCY_ERROR)
    assert scripts.runs == []
    assert made_environments(scripts) == []
    return caught.value


@pytest.mark.parametrize(
    ("file", "text", "value"),
    [
        ("requirements.txt", "leaf==1.0\n", 1),
        ("requirements.txt", "-r base-requirements.txt\n", 2),
        ("pyproject.toml", '[project]\nname = "x"\nversion = "1"\ndependencies = ["leaf<2"]\n', 1),
    ],
)
async def test_packages_are_installed_as_the_file_says(scripts: Scripts, file: str, text: str, value: int) -> None:
    scripts.write(f"a/{file}", text)
    scripts.write("a/base-requirements.txt", "leaf>1\n")
    assert (await scripts.run(scripts.write("a/main.py", USES))).output == value
    assert [made.packages for made in scripts.installs] == [(f"leaf=={value}.0",)]


async def test_metadata_in_the_script_goes_before_the_files_beside_it(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "leaf==1.0\n")
    block = '# /// script\n# requires-python = ">=3.11"\n# dependencies = ["leaf==2.0"]\n# ///\n'
    assert (await scripts.run(scripts.write("a/main.py", block + USES))).output == 2
    # Its code may change without its environment being made anew.
    assert (await scripts.run(scripts.write("a/main.py", block + USES + "# more\n"))).output == 2
    assert len(scripts.installs) == 1


async def test_a_lock_is_respected(scripts: Scripts, index: PackageIndex) -> None:
    scripts.write("a/requirements.txt", "leaf\n")
    digest = index.add_wheel("leaf", "1.5", "value = 1.5")
    scripts.write("a/requirements.lock", f"leaf==1.5 --hash={digest}\n")
    assert (await scripts.run(scripts.write("a/main.py", USES))).output == 1.5


async def test_a_lock_that_says_another_hash_installs_nothing(scripts: Scripts) -> None:
    scripts.write("a/requirements.lock", f"leaf==1.0 --hash=sha256:{'0' * 64}\n")
    scripts.write("a/main.py", USES)
    failure = await dependency_failure(scripts)
    assert "hash" in failure.told.lower()


@pytest.mark.parametrize("kind", ["project", "script"])
async def test_a_lock_of_uv_is_respected(scripts: Scripts, index: PackageIndex, root: Path, kind: str) -> None:
    block = '# /// script\n# requires-python = ">=3.11"\n# dependencies = ["leaf"]\n# ///\n'
    scripts.write("a/main.py", (block if kind == "script" else "") + USES)
    scripts.write("a/pyproject.toml", '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["leaf"]\n')
    what = ("--script", "main.py") if kind == "script" else ()
    local = index.url.replace("packages.test", "127.0.0.1")
    locking = await asyncio.create_subprocess_exec(
        uv.find_uv_bin(), "lock", "--quiet", "--no-cache", "--python", sys.executable, *what,
        cwd=root / "a", env={"PATH": "/usr/bin:/bin", "HOME": str(root), "UV_DEFAULT_INDEX": f"{local}/simple"},
    )  # fmt: skip
    assert await locking.wait() == 0
    lock = root / "a" / ("main.py.lock" if kind == "script" else "uv.lock")
    lock.write_text(lock.read_text().replace("127.0.0.1", "packages.test"))
    # What came later is not taken.
    index.add_wheel("leaf", "3.0", "value = 3")
    assert (await scripts.run("a/main.py")).output == 2
    assert index.count("leaf-3.0-py3-none-any.whl") == 0


async def test_sixteen_first_calls_install_once(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "leaf==1.0\n")
    scripts.write("a/main.py", USES)
    replies = await asyncio.gather(*[scripts.run("a/main.py") for _ in range(16)])
    assert [reply.output for reply in replies] == [1] * 16
    assert len(scripts.installs) == 1
    assert scripts.leftovers() == []


async def test_scripts_that_depend_on_the_same_share_an_environment(scripts: Scripts) -> None:
    for folder in ("a", "b"):
        scripts.write(f"{folder}/requirements.txt", "leaf==1.0\n")
        await scripts.run(scripts.write(f"{folder}/main.py", USES))
    assert len(scripts.installs) == 1


async def test_changed_requirements_make_another_environment(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "leaf==1.0\n")
    scripts.write("a/main.py", USES)
    prepared = await scripts.prepare("a/main.py")
    assert await scripts.service.is_current(prepared)
    scripts.write("a/requirements.txt", "leaf==2.0\n")
    assert not await scripts.service.is_current(prepared)
    assert (await scripts.run("a/main.py")).output == 2


@pytest.mark.parametrize("how", ["package", "interpreter", "everything", "marker"])
async def test_a_broken_environment_heals(scripts: Scripts, how: str) -> None:
    scripts.write("a/requirements.txt", "leaf==1.0\n")
    scripts.write("a/main.py", USES)
    folder = (await scripts.prepare("a/main.py")).environment.folder
    make_writable(folder.root)
    match how:
        case "package":
            (folder.packages / "leaf.py").unlink()
        case "interpreter":
            folder.python.unlink()
            folder.python.symlink_to("/nowhere/python")
        case "everything":
            shutil.rmtree(folder.root)
        case _:
            folder.root.with_suffix(".json").write_text("{")
    assert (await scripts.run("a/main.py")).output == 1
    assert len(scripts.installs) == 2


async def test_an_environment_is_read_only_and_holds_no_cache(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "leaf==1.0\n")
    folder = (await scripts.prepare(scripts.write("a/main.py", USES))).environment.folder
    writable = [path for path in (folder.root, *folder.root.rglob("*")) if not path.is_symlink() and path.stat().st_mode & 0o222]
    assert writable == []
    assert {path.name for path in folder.root.iterdir()} == {"env", "project"}
    changes = "import leaf\ntry:\n    open(leaf.__file__, 'w')\n    print(1)\nexcept OSError: print(0)"
    assert (await scripts.run(scripts.write("a/main.py", changes))).output == 0


async def test_a_package_that_does_not_exist_is_named(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "no-such-leaf\n")
    scripts.write("a/main.py", USES)
    failure = await dependency_failure(scripts)
    assert "no-such-leaf" in failure.message
    assert [made.done for made in scripts.installs] == [False]
    assert scripts.leftovers() == []


@pytest.mark.parametrize("file", ["requirements.txt", "pyproject.toml", "requirements.lock", "uv.lock"])
async def test_a_file_that_is_garbage_is_a_dependency_error(scripts: Scripts, root: Path, file: str) -> None:
    scripts.write("a/main.py", USES)
    scripts.write("a/pyproject.toml", '[project]\nname = "x"\nversion = "1"\n')
    (root / "a" / file).write_bytes(b"\x00\xff [[[ ==\n")
    await dependency_failure(scripts)


async def test_a_build_sees_and_changes_nothing_but_its_own_folder(scripts: Scripts, index: PackageIndex, root: Path) -> None:
    scripts.write("b/requirements.txt", "leaf==1.0\n")
    other = (await scripts.prepare(scripts.write("b/main.py", USES))).environment.folder
    secret = scripts.state / "tool-agent.db"
    secret.write_text("secret")
    secret.chmod(0o666)
    targets = [str(other.packages / "leaf.py"), str(secret), str(root / "b/main.py"), str(scripts.state / "environments/x"), "/usr/x"]
    building = f"""
    for path in {targets!r}:
        try: open(path, "a").write("value = 'bad'")
        except OSError: pass
    import os
    print(os.listdir("/"), flush=True)"""
    index.add_source("crafty", "1.0", building.strip())
    scripts.write("a/requirements.txt", "crafty\n")
    assert (await scripts.run(scripts.write("a/main.py", "import crafty\nprint(crafty.value)"))).output == 1
    assert secret.read_text() == "secret"
    assert (other.packages / "leaf.py").read_text() == "value = 1"
    assert (root / "b/main.py").read_text() == USES
    assert not is_there("/usr/x")


async def test_a_build_that_calls_out_reaches_nobody_and_is_told_of(scripts: Scripts, index: PackageIndex) -> None:
    building = """
    import urllib.request
    for address in ("http://example.com/", "http://169.254.169.254/", "http://127.0.0.1:7233/"):
        try: urllib.request.urlopen(address, timeout=5); raise SystemExit("reached")
        except OSError: pass"""
    index.add_source("caller", "1.0", building.strip())
    scripts.write("a/requirements.txt", "caller\n")
    assert (await scripts.run(scripts.write("a/main.py", "import caller\nprint(caller.value)"))).output == 1
    assert {refusal.split(": ")[0] for refusal in scripts.installs[0].refusals} == {"example.com:80", "169.254.169.254:80"}


async def test_a_build_that_does_not_end_is_ended(tmp_path: Path, root: Path, index: PackageIndex) -> None:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    index.add_source("sleepy", "1.0", "import time; time.sleep(1000)")
    state = tmp_path / "slow"
    installer = installer_of(indexes, Egress(state, (), IDENTITY, resolve=resolve), 6)
    async with script_service(state, root, state / "environments", installer=installer) as scripts:
        scripts.write("a/requirements.txt", "sleepy\n")
        scripts.write("a/main.py", "print(1)")
        await dependency_failure(scripts)
        assert scripts.leftovers() == []
        assert not [path for path in (state / "environments").iterdir() if path.is_dir()]


async def test_a_cancelled_installation_leaves_nothing_and_the_next_makes_it(scripts: Scripts, index: PackageIndex) -> None:
    index.add_source("slow", "1.0", "import time; time.sleep(3)")
    scripts.write("a/requirements.txt", "slow\n")
    scripts.write("a/main.py", "import slow\nprint(slow.value)")
    preparing = asyncio.create_task(scripts.prepare("a/main.py"))
    async with asyncio.timeout(60):
        while not index.count(".tar.gz"):  # noqa: ASYNC110 - another thread serves it
            await asyncio.sleep(0.02)
    preparing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert scripts.leftovers() == []
    assert {path.suffix for path in (scripts.state / "environments").iterdir()} <= {".lock"}
    assert (await scripts.run("a/main.py")).output == 1


async def test_an_installation_that_is_cancelled_again_and_again_leaves_nothing(scripts: Scripts, index: PackageIndex) -> None:
    index.add_source("slow", "1.0", "import time; time.sleep(1000)")
    scripts.write("a/requirements.txt", "slow\n")
    scripts.write("a/main.py", "print(1)")
    installing: list[asyncio.Task[object]] = []

    def tell(message: str) -> None:
        if message.startswith("installing") and (task := asyncio.current_task()):
            installing.append(task)

    preparing = asyncio.create_task(scripts.service.prepare(scripts.root, "a/main.py", ScriptLanguage.PYTHON, "tool", tell))
    async with asyncio.timeout(60):
        while not index.count(".tar.gz"):  # noqa: ASYNC110 - another thread serves it
            await asyncio.sleep(0.02)
    # Its time is over, and nobody waits any more, and the service stops.
    (one,) = installing
    while not one.done():
        one.cancel()
        await asyncio.sleep(0)
    with pytest.raises(ScriptFailure):
        await preparing
    assert scripts.leftovers() == []
    assert {path.suffix for path in (scripts.state / "environments").iterdir()} <= {".lock"}
    assert [made.done for made in scripts.installs] == [False]


@pytest.mark.parametrize("lock", [False, True])
async def test_npm_packages_are_installed_for_node(scripts: Scripts, index: PackageIndex, lock: bool) -> None:
    integrity = index.add_npm("leaf", "1.2.3", "module.exports = 7;")
    scripts.write("a/package.json", '{"dependencies": {"leaf": "^1.0.0"}}')
    if lock:
        place = f'"version": "1.2.3", "resolved": "{index.url}/npm/leaf/-/leaf-1.2.3.tgz", "integrity": "{integrity}"'
        packages = f'{{"": {{"dependencies": {{"leaf": "^1.0.0"}}}}, "node_modules/leaf": {{{place}}}}}'
        scripts.write("a/package-lock.json", f'{{"name": "a", "lockfileVersion": 3, "packages": {packages}}}')
        index.add_npm("leaf", "1.9.0", "module.exports = 9;")
    for _ in range(2):
        reply = await scripts.run(
            scripts.write("a/main.mjs", 'import leaf from "leaf"; console.log(leaf);'), language=ScriptLanguage.NODEJS
        )
        assert reply.output == 7
    assert (index.count(".tgz"), len(scripts.installs)) == (1, 1)


async def test_packages_of_a_scope_are_accounted_for_by_their_whole_names_and_the_index_as_what_was_reached(
    scripts: Scripts, index: PackageIndex
) -> None:
    for name in ("@acme/leaf", "@acme/root", "leaf"):
        index.add_npm(name, "1.2.3", "module.exports = 7;")
    scripts.write("a/package.json", '{"dependencies": {"@acme/leaf": "1", "@acme/root": "1", "leaf": "1"}}')
    await scripts.run(scripts.write("a/main.mjs", "console.log(1);"), language=ScriptLanguage.NODEJS)
    (made,) = scripts.installs
    assert made.packages == ("@acme/leaf==1.2.3", "@acme/root==1.2.3", "leaf==1.2.3")
    assert made.account is not None
    assert made.account.enforced.hosts == index.hosts


async def test_an_npm_package_that_does_not_exist_is_named(scripts: Scripts) -> None:
    scripts.write("a/package.json", '{"dependencies": {"no-such-leaf": "1"}}')
    scripts.write("a/main.mjs", "console.log(1);")
    failure = await dependency_failure(scripts, "a/main.mjs", language=ScriptLanguage.NODEJS)
    assert "no-such-leaf" in failure.told


async def test_a_program_that_is_not_there_is_unavailable_with_the_remedy(tmp_path: Path, root: Path, environments_folder: Path) -> None:
    programs = replace(Programs.found(Path(uv.find_uv_bin())), node=None, npm=None, bun=None)
    async with script_service(tmp_path / "state", root, environments_folder, programs=programs) as scripts:
        scripts.write("a/main.mjs", "console.log(1);")
        for language, setting in [(ScriptLanguage.NODEJS, "TOOL_AGENT_NODE_BINARY"), (ScriptLanguage.BUN, "TOOL_AGENT_BUN_BINARY")]:
            with pytest.raises(ScriptFailure) as caught:
                await scripts.run("a/main.mjs", language=language)
            assert (caught.value.kind, caught.value.error_type) == (ScriptErrorKind.UNAVAILABLE, ErrorType.UNAVAILABLE)
            assert setting in caught.value.message


def test_a_program_brings_its_installation_but_never_a_whole_home(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/node").touch()
    alone = Programs.found(Path(uv.find_uv_bin()), node=tmp_path / "bin/node").node
    (tmp_path / "lib/node_modules").mkdir(parents=True)
    whole = Programs.found(Path(uv.find_uv_bin()), node=tmp_path / "bin/node").node
    assert (alone, whole) == (Program(tmp_path / "bin/node"), Program(tmp_path / "bin/node", tmp_path))


def test_of_archives_beside_a_lock_those_that_it_names_belong_to_it(tmp_path: Path) -> None:
    for name in ("own-1.0.0.tgz", "data.tgz"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "package-lock.json").write_text('{"packages": {"node_modules/own": {"resolved": "file:own-1.0.0.tgz"}}}')
    found = dependencies_of(Script(tmp_path / "main.mjs", "main.mjs"), ScriptLanguage.NODEJS)
    assert list(found.files) == ["package-lock.json", "package.json", "own-1.0.0.tgz"]
