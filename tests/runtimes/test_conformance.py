"""The conformance suite, over the registry of runtimes."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

import pytest
from pydantic import JsonValue

from engine.network.ports import free_port
from engine.runtimes import RUNTIMES
from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.running.shared_processes import SharedProcesses
from engine.runtimes.runtime import Running, ToolRequest
from tests.docker.subject import docker
from tests.programs import start_program
from tests.runtimes.conformance import CHECKS, ConformanceFailure, Subject, check_runtime
from tests.runtimes.conftest import PROJECTS, eventually, home_of, local_source
from tests.runtimes.test_mcp import mcp_source
from tests.scripts.subject import script
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import BuiltinSource, LocalSource, RemoteSource, ToolSource

NOT_EXECUTED_YET: set[str] = set()


def note_seen(file: Path) -> Callable[[], Awaitable[None]]:
    async def seen() -> None:
        await eventually(file.exists)
        await asyncio.to_thread(file.unlink)

    return seen


def served(parts: RuntimeParts, tag: str, source: ToolSource, absent: ToolSource) -> Subject:
    """The versatile tool, over HTTP."""
    home = home_of(parts.local.state)
    return Subject(
        runtime=RUNTIMES[tag](parts),
        tool=ToolManifest(tool_id="versatile", name="Versatile"),
        source=source,
        absent=absent,
        output_dir=parts.local.state,
        answers=({"x": [1, "二"]}, lambda output: cast("dict[str, JsonValue]", output)["echo"] == {"x": [1, "二"]}),
        refuses={"mode": "refuse"},
        fails={"mode": "fail"},
        garbles={"mode": "garble"},
        hangs={"mode": "hang"},
        call_id_of=({"mode": "headers_back"}, lambda output: cast("dict[str, JsonValue]", output)["idempotency-key"]),
        began=note_seen(home / "hanging"),
        hung_up=note_seen(home / "hung_up"),
    )


@asynccontextmanager
async def local(parts: RuntimeParts) -> AsyncGenerator[Subject]:
    yield served(parts, "local", local_source(), local_source("nowhere"))


@asynccontextmanager
async def remote(parts: RuntimeParts) -> AsyncGenerator[Subject]:
    home, port = home_of(parts.local.state), free_port()
    home.mkdir(parents=True)
    somewhere = await start_program(
        *(sys.executable, str(PROJECTS / "versatile/main.py"), "--port", str(port)),
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.DEVNULL,
    )
    there = f"http://127.0.0.1:{port}"
    absent = RemoteSource(remote_url=f"http://127.0.0.1:{free_port()}")
    try:
        async with asyncio.timeout(60):
            while await parts.http.health(there, "/", 1.0) is None:  # noqa: ASYNC110 - another process gets ready
                await asyncio.sleep(0.02)
        yield served(parts, "remote", RemoteSource(remote_url=there, remote_path="/run"), absent)
    finally:
        somewhere.kill()
        await somewhere.wait()


@asynccontextmanager
async def builtin(parts: RuntimeParts) -> AsyncGenerator[Subject]:
    yield Subject(
        runtime=RUNTIMES["builtin"](parts),
        tool=parts.builtin_tools["calculator"].manifest,
        source=BuiltinSource(handler="calculator"),
        absent=BuiltinSource(handler="nowhere"),
        output_dir=parts.local.state,
        answers=({"expression": "6 * 7"}, lambda output: cast("dict[str, JsonValue]", output)["result"] == 42),
        refuses={"not": "what it takes"},
    )


@asynccontextmanager
async def mcp(parts: RuntimeParts) -> AsyncGenerator[Subject]:
    home = home_of(parts.local.state)
    yield Subject(
        runtime=RUNTIMES["mcp"](parts),
        tool=ToolManifest(tool_id="versatile", name="Versatile"),
        source=mcp_source(),
        absent=mcp_source(host_dir="nowhere"),
        output_dir=parts.local.state,
        answers=({"x": [1, "二"]}, lambda output: cast("dict[str, JsonValue]", output)["echo"] == {"x": [1, "二"]}),
        refuses={"mode": "refuse"},
        fails={"mode": "fail"},
        garbles={"mode": "garble"},
        hangs={"mode": "hang"},
        call_id_of=({"mode": "meta"}, lambda output: cast("dict[str, JsonValue]", output)["tool-agent/call-id"]),
        began=note_seen(home / "hanging"),
        hung_up=note_seen(home / "hung_up"),
    )


SUBJECTS = {"local": local, "mcp": mcp, "docker": docker, "remote": remote, "builtin": builtin, "script": script}


def test_every_source_type_is_executed_or_said_not_to_be() -> None:
    union, _ = get_args(ToolSource)
    tags = {source.model_fields["type"].default for source in get_args(union)}
    assert set(RUNTIMES) == tags - NOT_EXECUTED_YET, "Each has a line in `RUNTIMES` of engine/runtimes/__init__.py."


def test_every_runtime_has_a_subject() -> None:
    assert set(SUBJECTS) == set(RUNTIMES), "Each has a line in `SUBJECTS` above: its runtime, and a tool to check it with."


@pytest.mark.parametrize("tag", RUNTIMES)
async def test_a_runtime_conforms_and_every_check_applies_to_local_tools(parts: RuntimeParts, tag: str) -> None:
    async with SUBJECTS[tag](parts) as subject:
        applied = await check_runtime(subject)
    assert all(applied.values()) or tag != "local"


async def test_tools_that_share_a_process_conform_as_those_with_their_own(parts: RuntimeParts) -> None:
    subject = served(parts, "local", local_source(process="group"), local_source("nowhere", process="group"))
    home = home_of(parts.local.state, "group.shared")
    shared = SharedProcesses(LocalRuntime(parts.local, parts.launcher, parts.sandboxing, parts.http))
    subject = replace(subject, runtime=shared, began=note_seen(home / "hanging"), hung_up=note_seen(home / "hung_up"))
    assert all((await check_runtime(subject)).values())
    running = await shared.start(subject.tool.model_copy(update={"tool_id": "another"}), local_source(process="group"), subject.told.append)
    assert all((await check_runtime(subject)).values())
    await shared.stop(running)


class Hopeful(LocalRuntime):
    """Takes a failure for an answer."""

    async def call(self, running: Running, source: LocalSource, request: ToolRequest) -> JsonValue:
        try:
            return await super().call(running, source, request)
        except (CallFailed, NotSent):
            return None


async def test_a_runtime_that_hides_failures_does_not_conform(parts: RuntimeParts) -> None:
    subject = served(parts, "local", local_source(), local_source("nowhere"))
    hopeful = Hopeful(parts.local, parts.launcher, parts.sandboxing, parts.http)
    for check in ("a failure is an execution error with a known outcome", "a time-out has an unknown outcome and closes the connection"):
        with pytest.raises(ConformanceFailure):
            await CHECKS[check](replace(subject, runtime=hopeful))
