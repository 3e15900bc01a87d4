"""The docker tools on a real engine; no container is left."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from engine.making.workbench.places import WORK
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker.parts import DockerParts
from tests.activities.agent_tools.conftest import OWN, TASK, Agent, Make
from tests.docker.engines import IMAGE, ready_engine
from toolagent.contracts.sources import DockerSource
from toolagent_service.agents.model_notes import key_of_use
from toolagent_service.contracts.agent import ToolNote

OTHER = "create_0000000f"


@pytest.fixture(scope="module", autouse=True)
def an_engine() -> None:
    ready_engine()


@pytest_asyncio.fixture
async def builds(tmp_path: Path) -> AsyncGenerator[BuildContainers]:
    state = tmp_path / "docker"
    await asyncio.to_thread(state.mkdir)
    parts = DockerParts.by_default(tmp_path, state)
    builds = BuildContainers(parts)
    try:
        yield builds
    finally:
        for one in builds.known:
            await builds.destroy(one.container_id)
        await builds.close()
        parts.engine.close()


@pytest_asyncio.fixture
async def docking(make_agent: Make, builds: BuildContainers) -> Agent:
    return make_agent(builds)


async def made_by(agent: Agent, note: ToolNote) -> str:
    shown = (await agent.shown()).content
    assert not note.is_error, shown
    return shown.splitlines()[0].partition(": ")[2]


async def test_a_container_is_built_in_and_goes_with_its_task(docking: Agent, builds: BuildContainers) -> None:
    await docking.told("write_file", path="app/name.txt", content="words\n")
    container = await made_by(docking, await docking.use("create_docker_env", image=IMAGE, ports=[8000], volumes={"data": "/data"}))
    said = await docking.told(
        "run_in_docker", container_id=container, command=f"cat {WORK}/app/name.txt; id -u; touch {WORK}/x; echo kept > /kept"
    )
    assert "words\n0\n" in said
    assert "Read-only" in said
    log = await docking.told("run_in_docker", container_id=container[:12], command="echo begun; sleep 300", is_background=True)
    assert "log_file: /" in log
    new = await made_by(docking, await docking.use("rebuild_docker_ports", container_id=container, ports=[8000, 8001]))
    assert new != container
    assert "kept" in await docking.told("run_in_docker", container_id=new, command="cat /kept")
    assert "no container" in await docking.refused("run_in_docker", container_id=container, command="true")
    volumes = builds.volumes
    assert len([*volumes.iterdir()]) == 1
    await docking.benches.remove(TASK)
    assert builds.known == ()
    assert [*volumes.iterdir()] == []


async def test_a_repeated_use_finds_what_the_first_attempt_made(docking: Agent, builds: BuildContainers) -> None:
    bench = await docking.bench()
    making = await docking.ask("create_docker_env", image=IMAGE)
    container = await made_by(docking, await docking.do(making))
    (info,) = builds.known
    # As when the first attempt died before it could say what it had made.
    from_mark = await bench.containers.create(_wishes(), key_of_use(making.position, making.tool_use_id), lambda _: None)
    assert from_mark.container_id == container == info.container_id
    first = await bench.containers.rebuild(container, (8000,), "r", mem_limit=None, nano_cpus=None)
    again = await bench.containers.rebuild(container, (8000,), "r", mem_limit=None, nano_cpus=None)
    assert again == first
    assert builds.known == (first,)
    await bench.containers.destroy(first.container_id, "d")
    await bench.containers.destroy(first.container_id, "d")
    assert builds.known == ()


async def test_containers_of_others_cannot_be_named(docking: Agent) -> None:
    other = await docking.benches.of(OTHER)
    theirs = await other.containers.create(replace(_wishes(), image=IMAGE), "u", lambda _: None)
    for name in ("run_in_docker", "destroy_docker_env"):
        given = {"container_id": theirs.container_id, **({"command": "true"} if name == "run_in_docker" else {})}
        assert "no container" in await docking.refused(name, **given)
    assert "no container" in await docking.refused("run_in_docker", container_id="", command="true")
    assert "the files of the task" in await docking.refused("create_docker_env", image=IMAGE, volumes={"data": f"/{WORK}"})
    assert "path of the machine" in await docking.refused("create_docker_env", image=IMAGE, volumes={"/etc": "/x"})
    assert OTHER in await docking.benches.present()
    await docking.benches.clear(OTHER)
    assert other.containers.own == ()


async def test_a_docker_tool_is_submitted_by_its_dockerfile(docking: Agent) -> None:
    about = {"tool_id": OWN, "name": "Words", "description": "Counts.", "runtime_type": "docker", "internal_port": 8000}
    assert "host_dir" in await docking.refused("register_tool", **about)
    await docking.told("write_file", path="app/main.py", content="print()\n")
    assert "Dockerfile" in await docking.refused("register_tool", **about, host_dir=f"{WORK}/app")
    await docking.told("write_file", path="app/Dockerfile", content=f"FROM {IMAGE}\nEXPOSE 8000\n")
    assert "no container" in await docking.refused("register_tool", **about, host_dir=f"{WORK}/app", container_id="0123456789ab")
    note = await docking.use("register_tool", **about, host_dir=f"{WORK}/app", endpoint_path="/run")
    assert note.product is not None
    (entry,) = (await docking.candidates.load(note.product)).entries
    (source,) = entry.sources
    assert isinstance(source, DockerSource)
    assert (source.dockerfile, source.internal_port, source.endpoint_path) == ("Dockerfile", 8000, "/run")
    assert source.content is not None


def _wishes() -> Wishes:
    return Wishes(OWN)
