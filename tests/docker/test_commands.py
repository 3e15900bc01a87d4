"""Commands in build containers that try not to end: they are ended in time, and the engine keeps answering."""

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker_engine.engine import Api, Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from tests.docker.conftest import silent
from tests.parts import container_parts

BOUND_S = 30.0


@pytest_asyncio.fixture
async def containers(settings: DockerSettings, engine: Engine) -> AsyncGenerator[BuildContainers]:
    containers = BuildContainers(container_parts(settings, engine))
    yield containers
    await containers.close()


@pytest.mark.parametrize(
    "command",
    [
        "env -i sh -c 'sleep 300 & sleep 300'",
        "env -i setsid sleep 300 & sleep 300",
    ],
)
async def test_a_command_that_hides_its_mark_is_ended_with_all_it_started(containers: BuildContainers, command: str) -> None:
    made = await containers.create(Wishes("flask_api"), silent)
    async with asyncio.timeout(BOUND_S):
        ran = await containers.run(made.container_id, ["sh", "-c", f"echo begun; {command}"], 1)
    assert (ran.exit_code, ran.stdout) == (124, "begun\n")
    assert "sleep" not in (await containers.run(made.container_id, ["ps", "ax"], 20)).stdout


async def test_one_whose_output_stays_open_after_its_end_is_not_waited_for(containers: BuildContainers) -> None:
    made = await containers.create(Wishes("flask_api"), silent)
    async with asyncio.timeout(BOUND_S):
        ran = await containers.run(made.container_id, ["sh", "-c", "env -i setsid sleep 300 & echo begun"], 1)
    assert (ran.exit_code, ran.stdout) == (124, "begun\n")


async def test_however_much_is_going_on_the_engine_answers(engine: Engine) -> None:
    over = threading.Event()

    def wait(_api: Api) -> None:
        over.wait(BOUND_S)

    work = [asyncio.create_task(engine.work(wait, BOUND_S)) for _ in range(100)]
    try:
        await asyncio.sleep(0)
        await asyncio.wait_for(engine.check(), 10)
    finally:
        over.set()
    await asyncio.gather(*work)
