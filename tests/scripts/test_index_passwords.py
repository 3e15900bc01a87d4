"""A package never sees the password of its index."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index
from engine.runtimes.sandbox.egress import Egress
from tests.parts import installer_of
from tests.scripts.harness import IDENTITY, Scripts, script_service
from tests.scripts.index import PackageIndex, package_index, resolve
from toolagent.contracts.sources import ScriptLanguage

PASSWORD = "user:s3cret"  # noqa: S105 - the test's own
TELLING = """
    import os
    words = " ".join([*os.environ.values(), *(open(f"/proc/{pid}/environ").read() for pid in ("self", os.getppid()))])
    assert "s3cret" not in words, "s" "een"
"""


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        index.add_wheel("leaf", "1.0", "value = 1")
        index.add_npm("leaf", "1.0.0", "module.exports = 1;")
        index.add_source("crafty", "1.0", TELLING.strip())
        index.add_npm("crafty", "1.0.0", "module.exports = 1;", {"install": "env > made.txt"})
        yield index


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, index: PackageIndex) -> AsyncGenerator[Scripts]:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, {name: value.replace("//", f"//{PASSWORD}@") for name, value in index.variables.items()})

    state = tmp_path / "state"
    installer = installer_of(indexes, Egress(state, (), IDENTITY, resolve=resolve), 60)
    async with script_service(state, root, state / "environments", installer=installer) as scripts:
        yield scripts


def holds_it(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and b"s3cret" in path.read_bytes()]


async def test_wheels_are_installed_and_the_password_is_nowhere_afterwards(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "leaf==1.0\n")
    text = "import json, leaf, os\nprint(json.dumps([leaf.value, 's3cret' in str(os.environ)]))"
    assert (await scripts.run(scripts.write("a/main.py", text))).output == [1, False]
    assert holds_it(scripts.state) == []
    assert "s3cret" not in str(scripts.installs)


async def test_what_has_to_be_built_is_refused_with_the_reason(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "crafty\n")
    scripts.write("a/main.py", "print(1)")
    with pytest.raises(ScriptFailure) as caught:
        await scripts.run("a/main.py")
    assert caught.value.kind is ScriptErrorKind.DEPENDENCY
    assert "password" in caught.value.message
    assert "s3cret" not in f"{caught.value.message} {caught.value.told}"
    assert holds_it(scripts.state) == []


async def test_a_package_that_is_not_there_is_told_without_the_password(scripts: Scripts) -> None:
    scripts.write("a/requirements.txt", "no-such-leaf\n")
    scripts.write("a/main.py", "print(1)")
    with pytest.raises(ScriptFailure) as caught:
        await scripts.run("a/main.py")
    assert "s3cret" not in f"{caught.value.message} {caught.value.told} {scripts.installs}"


async def test_install_scripts_of_npm_packages_are_not_run(scripts: Scripts) -> None:
    scripts.write("a/package.json", '{"dependencies": {"leaf": "1.0.0", "crafty": "1.0.0"}}')
    scripts.write("a/main.mjs", 'import leaf from "leaf"; console.log(leaf);')
    environment = (await scripts.prepare("a/main.mjs", ScriptLanguage.NODEJS)).environment
    assert environment.modules is not None
    assert sorted(path.name for path in (environment.modules / "crafty").iterdir()) == ["index.js", "package.json"]
    assert holds_it(scripts.state) == []
    assert (await scripts.run("a/main.mjs", language=ScriptLanguage.NODEJS)).output == 1


async def test_without_a_password_they_are_run(tmp_path: Path, root: Path, index: PackageIndex) -> None:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    state = tmp_path / "plain"
    installer = installer_of(indexes, Egress(state, (), IDENTITY, resolve=resolve), 60)
    async with script_service(state, root, state / "environments", installer=installer) as scripts:
        scripts.write("a/package.json", '{"dependencies": {"crafty": "1.0.0"}}')
        scripts.write("a/main.mjs", "console.log(1);")
        environment = (await scripts.prepare("a/main.mjs", ScriptLanguage.NODEJS)).environment
        assert environment.modules is not None
        assert (environment.modules / "crafty/made.txt").is_file()
