"""Files of a call in a container: inputs can be read, outputs are collected, files of others are not visible."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from engine.calls.file_parameters import CallFolder
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import CallFailed
from engine.runtimes.runtime import Running, ToolRequest
from tests.docker.conftest import TOOL, containers_of, silent
from tests.docker.subject import versatile
from toolagent.contracts.manifest import ToolManifest

FILED: ToolManifest = TOOL.model_copy(
    update={"input_schema": {"type": "object", "properties": {"picture": {"type": "string", "format": "file-path"}}}}
)
SOURCE = versatile(volumes={}, environment={})


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


async def called(runtime: DockerRuntime, running: Running, folder: CallFolder, **params: JsonValue) -> dict[str, JsonValue]:
    request = ToolRequest("call-12345678", params, 20.0, folder.outputs)
    return cast("dict[str, JsonValue]", await runtime.call(running, SOURCE, request))


async def put(place: Path) -> Path:
    await asyncio.to_thread((place / "picture.png").write_text, "a picture")
    return place / "picture.png"


async def test_a_container_gets_the_files_of_its_calls_and_leaves_its_own(make_runtime: Callable[..., DockerRuntime], calls: Path) -> None:
    runtime = make_runtime(calls=calls)
    other = FILED.model_copy(update={"tool_id": "other"})
    running = await runtime.start(FILED, SOURCE, silent)
    async with CallFolder(calls, "call-12345678", FILED) as folder, CallFolder(calls, "call-87654321", other) as foreign:
        given, secret = await folder.hand_over(put), await foreign.hand_over(put)
        seen = await called(runtime, running, folder, mode="read", paths=[str(given), str(secret), str(calls.parent / "state")])
        assert seen == {str(given): "done", str(secret): "FileNotFoundError", str(calls.parent / "state"): "FileNotFoundError"}
        headers = await called(runtime, running, folder, mode="headers_back")
        made = Path(str(headers["x-output-dir"])) / "made"
        assert await called(runtime, running, folder, mode="write", paths=[str(made), str(given)]) == {
            str(made): "done",
            str(given): "PermissionError",
        }
        file = await asyncio.to_thread(folder.open, "made")
        assert file is not None
        with file:
            assert file.read() == b"x"
    await runtime.stop(running)


async def test_a_tool_without_files_sees_no_folder_of_this_machine(
    make_runtime: Callable[..., DockerRuntime], calls: Path, engine: Engine, settings: DockerSettings
) -> None:
    runtime = make_runtime(calls=calls)
    running = await runtime.start(TOOL, SOURCE, silent)
    async with CallFolder(calls, "call-12345678", TOOL) as folder:
        assert (await called(runtime, running, folder, mode="headers_back"))["x-output-dir"] == "/tmp"  # noqa: S108 - the container's own
    (one,) = await containers_of(engine, settings)
    assert [
        mount["Destination"] for mount in (await engine.ask(lambda api: api.inspect_container(one["Id"])))["Mounts"] if mount["RW"]
    ] == []
    await runtime.stop(running)


async def test_a_container_that_fills_the_disk_with_files_is_ended(
    make_runtime: Callable[..., DockerRuntime], calls: Path, engine: Engine, settings: DockerSettings
) -> None:
    defaults = settings.policy.defaults.model_copy(update={"disk_bytes": 64 * 1024})
    runtime = make_runtime(calls=calls, policy=settings.policy.model_copy(update={"defaults": defaults}))
    running = await runtime.start(FILED, SOURCE, silent)
    ended = asyncio.create_task(runtime.ended(running))
    async with CallFolder(calls, "call-12345678", FILED) as folder:
        with suppress(CallFailed):  # it may be ended before its answer is read
            await called(runtime, running, folder, mode="write", paths=[str(folder.outputs / f"{number}") for number in range(32)])
        assert "diskBytes" in await asyncio.wait_for(ended, 60)
    assert not await runtime.is_alive(running)
    assert await containers_of(engine, settings) == []


async def test_files_reach_a_container_that_outlived_its_worker(make_runtime: Callable[..., DockerRuntime], calls: Path) -> None:
    before = make_runtime(calls=calls)
    kept = await before.start(FILED, SOURCE, silent)
    await before.close()
    after = make_runtime(calls=calls)
    running = await after.start(FILED, SOURCE, silent)
    assert running.pid == kept.pid
    async with CallFolder(calls, "call-12345678", FILED) as folder:
        given = await folder.hand_over(put)
        assert await called(after, running, folder, mode="read", paths=[str(given)]) == {str(given): "done"}
    await after.stop(running)
