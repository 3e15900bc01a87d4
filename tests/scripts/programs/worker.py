"""A worker that tests kill: runs a hundred scripts, sixteen concurrently; reports on stdout when some of them run."""

import asyncio
import sys
from pathlib import Path

from tests.scripts.harness import Scripts, script_service


async def main(state: Path, root: Path, environments: Path) -> None:
    async with script_service(state, root, environments) as scripts:
        places = asyncio.Semaphore(16)
        await asyncio.gather(*[_one(scripts, places, number) for number in range(100)])


async def _one(scripts: Scripts, places: asyncio.Semaphore, number: int) -> None:
    async with places:
        await scripts.run("busy.py", {"number": number}, fileAccess={"allowWrite": [".cache/**"]})
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:4])))
