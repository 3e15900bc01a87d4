"""Many serving containers side by side; the hundred that the pages promise are a long test."""

import asyncio
from collections.abc import Callable

import pytest

from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.runtime import Running
from tests.docker.conftest import TOOL, containers_of, request_of, silent
from tests.docker.subject import versatile

AT_ONCE = 8
MEMORY = "48m"


@pytest.mark.parametrize("many", [10, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.timeout(600)
async def test_many_start_answer_and_go(
    make_runtime: Callable[..., DockerRuntime], engine: Engine, settings: DockerSettings, many: int
) -> None:
    runtime = make_runtime(start_timeout_s=120.0, stop_grace_s=1.0)
    source = versatile(mem_limit=MEMORY, nano_cpus=100_000_000, volumes={}, environment={})
    turns = asyncio.Semaphore(AT_ONCE)

    async def start(number: int) -> Running:
        async with turns:
            return await runtime.start(TOOL.model_copy(update={"tool_id": f"tool_{number}"}), source, silent)

    async def stop(running: Running) -> None:
        async with turns:
            await runtime.stop(running)

    up = await asyncio.gather(*map(start, range(many)))
    assert len({running.endpoint for running in up}) == many
    answers = await asyncio.gather(*[runtime.call(running, source, request_of(90.0, x=number)) for number, running in enumerate(up)])
    assert [answer["echo"]["x"] for answer in answers if isinstance(answer, dict) and isinstance(answer["echo"], dict)] == [*range(many)]
    await asyncio.gather(*map(stop, up))
    assert await containers_of(engine, settings) == []
    assert runtime.parts.egress.sweep() == ()
