"""Bun, installed from npm if this machine has none, and packages of the real registry."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
import uv

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.programs import Programs
from engine.runtimes.sandbox.egress import Egress
from tests.parts import installer_of, machine_indexes
from tests.scripts.harness import IDENTITY, POLICY, Scripts, script_service
from toolagent.contracts.sources import ScriptLanguage
from workers.settings.environment import environment

BOUNDS = POLICY.defaults.model_copy(update={"memory_bytes": 1024 * 1024 * 1024})


@pytest.fixture(scope="module")
def environments_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, so that Bun is installed once."""
    return tmp_path_factory.mktemp("bun")


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, environments_folder: Path) -> AsyncGenerator[Scripts]:
    programs = Programs.found(Path(uv.find_uv_bin()))
    assert programs.npm is not None, "`make setup` brings Node.js with npm"
    state = tmp_path / "state"
    installer = installer_of(machine_indexes(programs), Egress(state, (), IDENTITY))
    policy = POLICY.model_copy(update={"defaults": BOUNDS})
    async with script_service(state, root, environments_folder, installer=installer, programs=programs, policy=policy) as scripts:
        yield scripts


@pytest.mark.timeout(300)
async def test_bun_and_node_scripts_use_a_real_package(scripts: Scripts) -> None:
    text = 'import isOdd from "is-odd";\nconst { n } = await read();\nconsole.log(JSON.stringify({ odd: isOdd(n) }));\n'
    scripts.write("a/package.json", '{"dependencies": {"is-odd": "3.0.1"}}')
    scripts.write("a/main.ts", text + "async function read(): Promise<{ n: number }> { return await Bun.stdin.json(); }\n")
    scripts.write(
        "a/main.mjs",
        'import { readFileSync } from "node:fs";\n' + text + 'function read() { return JSON.parse(readFileSync(0, "utf8")); }\n',
    )
    assert (await scripts.run("a/main.ts", {"n": 3}, language=ScriptLanguage.BUN)).output == {"odd": True}
    assert (await scripts.run("a/main.mjs", {"n": 4}, language=ScriptLanguage.NODEJS)).output == {"odd": False}
    reply = await scripts.run(
        scripts.write("a/fn.ts", "export const twice = ({ n }: { n: number }): number => 2 * n;"),
        {"n": 4},
        language=ScriptLanguage.BUN,
        entry_point="twice",
    )
    assert reply.output == 8
    assert scripts.leftovers() == []


@pytest.mark.timeout(300)
async def test_a_lock_of_bun_is_respected_and_so_are_its_hashes(scripts: Scripts, root: Path) -> None:
    scripts.write("a/package.json", '{"dependencies": {"is-odd": "3.0.0"}}')
    text = 'import about from "is-odd/package.json";\nconsole.log(JSON.stringify(about.version));\n'
    scripts.write("a/main.ts", text)
    await scripts.prepare("a/main.ts", ScriptLanguage.BUN)
    await locked_by_bun(scripts, root / "a")
    # As somebody has it who locked some time ago: later versions would do as well.
    for name in ("package.json", "bun.lock"):
        scripts.write(f"a/{name}", (root / "a" / name).read_text().replace('"is-odd": "3.0.0"', '"is-odd": "^3.0.0"'))
    assert (await scripts.run("a/main.ts", language=ScriptLanguage.BUN)).output == "3.0.0"
    lock = (root / "a/bun.lock").read_text()
    scripts.write("a/bun.lock", re.sub(r"sha512-[\w+/]{8}", "sha512-AAAAAAAA", lock))
    with pytest.raises(ScriptFailure) as caught:
        await scripts.run("a/main.ts", language=ScriptLanguage.BUN)
    assert caught.value.kind is ScriptErrorKind.DEPENDENCY


async def locked_by_bun(scripts: Scripts, folder: Path) -> None:
    bun = scripts.environments.programs.bun
    assert bun is not None
    locking = await asyncio.create_subprocess_exec(
        str(bun.file), "install", "--lockfile-only", cwd=folder, env={**environment(), "HOME": str(folder)},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, told = await locking.communicate()
    assert locking.returncode == 0, told
