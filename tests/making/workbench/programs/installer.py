"""A worker that is killed while it installs a package."""

import asyncio
import sys
from pathlib import Path

from engine.making.workbench.bench import Workbenches
from tests.making.workbench.conftest import TASK, bench_parts
from toolagent_service.contracts.dependency_policy import DependencyVerdict


async def main(state: Path, package: str) -> None:
    async with bench_parts(state) as parts:
        bench = await Workbenches(state / "making", parts, "none").of(TASK)
        folder = await bench.create_project("words")
        await bench.add_dependency(folder, DependencyVerdict(requirement=package, name=package), 120.0, dev=False)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
