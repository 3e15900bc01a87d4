"""How many sandboxes of a kind a task may have at once: limits of a sandbox hold for each, not for all together."""

from pathlib import Path
from typing import cast

import pytest

from engine.making.repositories.packaging import Room
from engine.making.workbench.bench import Workbench
from engine.making.workbench.containers import BenchContainers
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.runtime import Progress
from tests.making.workbench.conftest import TASK
from tests.runtimes.conftest import silent
from toolagent_service.contracts.containers import ContainerInfo


async def test_few_commands_run_in_the_background_at_once(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    logs = [await bench.start(folder, "sleep 600", 600.0, f"{number}:a") for number in range(4)]
    with pytest.raises(BenchRefused, match="background"):
        await bench.start(folder, "sleep 600", 600.0, "4:a")
    assert await bench.start(folder, "sleep 600", 600.0, "3:a") == logs[3]
    await next(iter(bench.commands._running.values())).kill()  # pyright: ignore[reportPrivateUsage]
    assert await bench.start(folder, "sleep 600", 600.0, "4:a") not in logs


async def test_a_task_has_few_projects(bench: Workbench) -> None:
    for number in range(8):
        (bench.folder / "environments" / f"p{number}" / "1").mkdir(parents=True)
    with pytest.raises(BenchRefused, match="8 projects"):
        await bench.create_project("one-more")
    assert await bench.create_project("p3")


async def test_a_task_has_few_containers(tmp_path: Path) -> None:
    builds = Builds()
    containers = BenchContainers(TASK, tmp_path, cast("BuildContainers", builds))
    for number in (*range(4), 0):
        await containers.create(Wishes(""), f"{number}:a", silent)
    with pytest.raises(BenchRefused, match="4 containers"):
        await containers.create(Wishes(""), "4:a", silent)
    assert len(builds.known) == 4
    other = BenchContainers("create_0000000f", tmp_path, cast("BuildContainers", builds))
    await other.create(Wishes(""), "0:a", silent)
    assert len(builds.known) == 5


async def test_what_is_too_large_is_not_brought_and_leaves_nothing(bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    (tmp_path / "origin" / "a").write_text("12345")
    (tmp_path / "origin" / "b").symlink_to("a")
    with pytest.raises(BenchRefused, match="more than"):
        await bench.bring("mended", tmp_path / "origin", Room(9, 10))
    assert not (bench.folder / "brought").exists()
    await bench.bring("mended", tmp_path / "origin", Room(10, 10))
    assert (bench.folder / "work" / "mended" / "b").read_text() == "12345"


class Builds:
    """Containers that are listed, and do not exist."""

    def __init__(self) -> None:
        self.known: tuple[ContainerInfo, ...] = ()

    async def create(self, wishes: Wishes, _progress: Progress) -> ContainerInfo:
        made = ContainerInfo.model_construct(container_id=f"{len(self.known):064x}", tool_id=wishes.tool_id)
        self.known = (*self.known, made)
        return made
