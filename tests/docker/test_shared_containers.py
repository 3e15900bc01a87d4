"""Tools of one group in one container: made for the first, shared by all, removed with the last."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.labels import IMAGE, OWN_IMAGES
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.running.shared_processes import SharedProcesses
from tests.docker.conftest import containers_of, request_of, silent
from tests.docker.subject import built_versatile
from toolagent.contracts.manifest import ToolManifest
from toolagent_service.calls.shared_processes import place_of_volumes

ONE, TWO = (ToolManifest(tool_id=f"group_{name}", name=name) for name in ("one", "two"))
SOURCE = built_versatile(process="group")
OTHER = built_versatile(process="group", endpoint_path="/other")


async def test_tools_of_a_group_are_in_one_container(runtime: DockerRuntime, engine: Engine, settings: DockerSettings) -> None:
    shared = SharedProcesses(runtime)
    one, two = await shared.start(ONE, SOURCE, silent), await shared.start(TWO, OTHER, silent)
    (container,) = await containers_of(engine, settings)
    assert (one.endpoint, one.pid, container["Labels"][IMAGE].partition(":")[0]) == (two.endpoint, two.pid, f"{OWN_IMAGES}tool/group")
    assert (Path(settings.state) / "volumes" / place_of_volumes("group.shared") / "home").is_dir()
    await shared.stop(one)
    environment = await shared.call(two, OTHER, request_of(mode="environment"))
    assert cast("dict[str, JsonValue]", environment)["TOOL_AGENT_TOOL_ID"] == "group"
    await shared.stop(two)
    assert await containers_of(engine, settings) == []


async def test_a_new_worker_finds_the_container_for_all(
    make_runtime: Callable[..., DockerRuntime], engine: Engine, settings: DockerSettings
) -> None:
    before = make_runtime()
    kept = await SharedProcesses(before).start(ONE, SOURCE, silent)
    await before.close()  # as a killed worker leaves it
    after = make_runtime()
    assert [(marks.tool, marks.version) for marks in await after.found()] == [("group_one", "1.0.0")]
    shared = SharedProcesses(after)
    one, two = await shared.start(ONE, SOURCE, silent), await shared.start(TWO, OTHER, silent)
    assert {(member.endpoint, member.pid) for member in (one, two)} == {(kept.endpoint, kept.pid)}
    await shared.stop(one)
    assert len(await containers_of(engine, settings)) == 1
    await shared.stop(two)
    assert await containers_of(engine, settings) == []
