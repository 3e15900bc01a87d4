"""A worker that tests kill while it installs the dependencies of a script."""

import asyncio
import sys
from pathlib import Path

from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.network import through
from engine.runtimes.sandbox.egress import Egress
from tests.scripts.harness import IDENTITY, script_service
from tests.scripts.index import PackageIndex, resolve
from toolagent.contracts.sources import ScriptLanguage


async def main(state: Path, root: Path, environments: Path, port: int) -> None:
    index = PackageIndex(port)

    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    installer = Installer(indexes, through(Egress(state, (), IDENTITY, resolve=resolve), trusted=True))
    async with script_service(state, root, environments, installer=installer) as scripts:
        await scripts.prepare("a/main.py")


if __name__ == "__main__":
    state, root, environments = map(Path, sys.argv[1:4])
    asyncio.run(main(state, root, environments, int(sys.argv[4])))
