"""A container that runs beside the version in use shares no folder with it, and leaves nothing in its folders."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.settings import DockerSettings
from tests.docker.conftest import TOOL, request_of, silent
from tests.docker.subject import versatile
from toolagent_service.calls.shared_processes import place_of_volumes


async def test_what_it_writes_and_says_is_kept_apart(
    make_runtime: Callable[..., DockerRuntime], settings: DockerSettings, tmp_path: Path
) -> None:
    beside, place = tmp_path / "trial", TOOL.tool_id.replace(":", "_")
    in_use = settings.state / "volumes" / place_of_volumes(place) / "data"
    in_use.mkdir(parents=True)
    (in_use / "precious").write_text("of the version in use")
    runtime = make_runtime(beside=beside, calls=beside / "calls", observed=True)
    source = versatile(volumes={"data": "/data"}, environment={})
    running = await runtime.start(TOOL, source, silent)
    said = cast("dict[str, JsonValue]", await runtime.call(running, source, request_of(mode="write", paths=["/data/made"])))
    assert said == {"/data/made": "done"}
    await runtime.stop(running)
    assert [path.name for path in (beside / "volumes" / place_of_volumes(place) / "data").iterdir()] == ["made"]
    assert [path.name for path in in_use.iterdir()] == ["precious"]
    assert (beside / "tools" / place / "last_run.log").is_file()
    assert not (settings.state / "tools").exists()
