"""The versatile tool in a container, for the conformance checks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.parts import RuntimeParts
from tests.docker.engines import VERSATILE, ready_engine
from tests.runtimes.conformance import Subject
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.shared_processes import place_of_volumes

__all__ = ["built_versatile", "docker", "docker_subject", "versatile"]

_BOUND_S = 60.0


def versatile(**more: object) -> DockerSource:
    """The tool from an existing image; its home is a folder on this machine."""
    given = {
        "image": VERSATILE,
        "endpoint_path": "/run",
        "environment": {"HOME": "/home"},
        "volumes": {"home": "/home"},
    }
    return DockerSource.model_validate({**given, **more})


def built_versatile(**more: object) -> DockerSource:
    """The tool built from its Dockerfile."""
    return versatile(image=None, dockerfile="Dockerfile", host_dir="versatile", **more)


def docker_subject(runtime: DockerRuntime, state: Path) -> Subject:
    home = state / "volumes" / place_of_volumes("versatile") / "home"
    return Subject(
        runtime=runtime,
        tool=ToolManifest(tool_id="versatile", name="Versatile"),
        source=versatile(),
        absent=versatile(image="tool-agent-nowhere.invalid/nothing"),
        output_dir=state,
        answers=({"x": [1, "二"]}, lambda output: cast("dict[str, JsonValue]", output)["echo"] == {"x": [1, "二"]}),
        refuses={"mode": "refuse"},
        fails={"mode": "fail"},
        garbles={"mode": "garble"},
        hangs={"mode": "hang"},
        call_id_of=({"mode": "headers_back"}, lambda output: cast("dict[str, JsonValue]", output)["idempotency-key"]),
        began=_note_seen(home / "hanging"),
        hung_up=_note_seen(home / "hung_up"),
    )


@asynccontextmanager
async def docker(parts: RuntimeParts) -> AsyncGenerator[Subject]:
    await asyncio.to_thread(ready_engine)
    made = DockerParts.by_default(parts.local.data, parts.local.state)
    runtime = DockerRuntime(made, parts.http)
    try:
        yield docker_subject(runtime, parts.local.state)
    finally:
        await runtime.close()
        made.engine.close()


def _note_seen(file: Path) -> Callable[[], Awaitable[None]]:
    async def seen() -> None:
        async with asyncio.timeout(_BOUND_S):
            while not file.exists():  # noqa: ASYNC110, ASYNC240 - what is waited for happens in a container
                await asyncio.sleep(0.02)
        await asyncio.to_thread(file.unlink)

    return seen
