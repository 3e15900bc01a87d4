"""A misbehaving build of a package is ended, its cause is named, and nothing of it stays."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index
from engine.runtimes.sandbox.egress import Egress
from tests.parts import installer_of
from tests.scripts.harness import IDENTITY, MIB, POLICY, Scripts, script_service
from tests.scripts.index import PackageIndex, package_index, resolve
from toolagent.contracts.sources import ScriptLanguage

BUILDS = {
    "memory": """
    held = []
    while True: held.append(bytearray(1048576))""",
    "disk": """
    import time
    for n in range(2000):
        open(f"filler-{n}", "wb").write(b"x" * 1048576)
        time.sleep(0.005)""",
    "processes": """
    import subprocess
    running = [subprocess.Popen(["/bin/sleep", "3"]) for _ in range(200)]""",
    "output": """
    import os
    for _ in range(16384): os.write(2, b"x" * 65536)""",
    # Quicker than anybody looks, and without an error.
    "folders": """
    import os
    here = os.getcwd()
    os.makedirs(os.environ["HOME"], exist_ok=True)
    os.chdir(os.environ["HOME"])
    for _ in range(1200): os.mkdir("d"); os.chdir("d")
    os.chdir(here)""",
}
CAUSES = {
    "memory": "more memory",
    "disk": "more disk",
    "processes": "more processes",
    "output": "",
    "folders": "more than 128 in each other",
}


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        yield index


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, index: PackageIndex) -> AsyncGenerator[Scripts]:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    ceilings = POLICY.ceilings.model_copy(update={"memory_bytes": 256 * MIB, "disk_bytes": 128 * MIB, "processes": 60})
    policy = POLICY.model_copy(update={"ceilings": ceilings})
    state = tmp_path / "state"
    installer = installer_of(indexes, Egress(state, (), IDENTITY, resolve=resolve), 60)
    async with script_service(state, root, state / "environments", installer=installer, policy=policy) as scripts:
        yield scripts


@pytest.mark.parametrize("how", BUILDS)
async def test_a_build_that_takes_too_much_is_ended_and_the_cause_is_named(scripts: Scripts, index: PackageIndex, how: str) -> None:
    index.add_source("greedy", "1.0", BUILDS[how].strip())
    scripts.write("a/requirements.txt", "greedy\n")
    scripts.write("a/main.py", "print(1)")
    with pytest.raises(ScriptFailure) as caught:
        await scripts.run("a/main.py")
    assert caught.value.kind is ScriptErrorKind.DEPENDENCY
    assert CAUSES[how] in caught.value.message
    assert len(caught.value.message) + len(caught.value.told) < 10_000
    assert scripts.leftovers() == []
    kept = {path.suffix for path in (scripts.state / "environments").iterdir()}
    assert kept <= {".lock"}
