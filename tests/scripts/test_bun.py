"""Bun, installed from npm where this machine has none, and packages of the real registry."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
import uv

from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.scripts.environments import Installer
from engine.runtimes.scripts.network import through
from engine.runtimes.scripts.programs import Programs
from tests.scripts.harness import IDENTITY, POLICY, Scripts, script_service
from toolagent.contracts.sources import ScriptLanguage
from workers.scripts import indexes_of
from workers.settings import environment

BOUNDS = POLICY.defaults.model_copy(update={"memory_bytes": 1024 * 1024 * 1024})


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path) -> AsyncGenerator[Scripts]:
    programs = Programs.found(Path(uv.find_uv_bin()))
    if programs.npm is None:
        pytest.skip("Node.js with npm is not on this machine.")
    state = tmp_path / "state"
    installer = Installer(indexes_of(programs, environment()), through(Egress(state, (), IDENTITY), trusted=True))
    policy = POLICY.model_copy(update={"defaults": BOUNDS})
    async with script_service(state, root, state / "environments", installer=installer, programs=programs, policy=policy) as scripts:
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
