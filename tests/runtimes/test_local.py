"""A uv project of this machine, served by a process of ours."""

import asyncio
import dataclasses
import socket
from pathlib import Path
from typing import cast

import psutil
import pytest
from pydantic import JsonValue

from engine.runtimes.failures import StartFailed
from engine.runtimes.local import LocalRuntime, LocalSettings
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.ports import free_port
from engine.runtimes.runtime import Running
from tests.runtimes.conftest import PROJECTS, eventually, is_gone, local_source, request_of, silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource


def runtime_of(parts: RuntimeParts, settings: LocalSettings | None = None) -> LocalRuntime:
    return LocalRuntime(settings or parts.local, parts.launcher, parts.environments, parts.http)


def tool(tool_id: str = "versatile") -> ToolManifest:
    return ToolManifest(tool_id=tool_id, name=tool_id)


async def failing(runtime: LocalRuntime, source: LocalSource, tool_id: str = "versatile") -> StartFailed:
    with pytest.raises(StartFailed) as caught:
        await runtime.start(tool(tool_id), source, silent)
    return caught.value


async def ask(runtime: LocalRuntime, running: Running, mode: str, **params: JsonValue) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", await runtime.call(running, local_source(), request_of(20.0, mode=mode, **params)))


async def test_a_tool_gets_its_own_environment_and_nothing_of_the_workers(
    parts: RuntimeParts, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_AGENT_SECRET_KEY", "of the worker")
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    seen = await ask(runtime, running, "environment")
    await runtime.stop(running)
    added = {"TOOL_AGENT_OWNER", "TOOL_AGENT_RUN", "LC_CTYPE"}
    assert {name: value for name, value in seen.items() if name not in added} == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(state / "tools/versatile"),
        "PORT": str(running.port),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TOOL_AGENT_TOOL_ID": "versatile",
    }


async def test_a_tool_leads_its_own_group_and_session(parts: RuntimeParts) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    assert running.pid is not None
    stat = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()  # noqa: ASYNC240 - procfs
    assert stat[2:4] == [str(running.pid), str(running.pid)]
    await runtime.stop(running)


async def test_stopping_leaves_an_account_and_the_output(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    await runtime.stop(running)
    await runtime.stop(running)
    folder = state / "tools/versatile"
    served = f"Server started on port {running.port}\n"
    lines = (folder / "last_run.log").read_text().splitlines()
    assert lines[0].endswith(f"/bin/python main.py --port {running.port}")
    assert lines[1:] == ["Exit Code: -15", "--- STDOUT ---", served.strip(), "--- STDERR ---", ""]
    assert (folder / "stdout.log").read_text() == served


async def test_a_tool_that_ends_by_itself_leaves_an_account(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    with pytest.raises(Exception, match="broke"):
        await ask(runtime, running, "exit")
    assert await runtime.ended(running) == "exited with code 3"
    assert "Exit Code: 3\n" in (state / "tools/versatile/last_run.log").read_text()
    assert "leaving\n" in (state / "tools/versatile/last_run.log").read_text()


async def test_a_loud_tool_cannot_fill_the_disk(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    await ask(runtime, running, "shout", lines=5 * 1024)
    await runtime.stop(running)
    folder = state / "tools/versatile"
    sizes = [path.stat().st_size for path in (folder / "stdout.log", folder / "stdout.log.1")]
    assert max(sizes) <= 1024 * 1024
    account = (folder / "last_run.log").read_text()
    assert len(account) < 70 * 1024
    assert "earlier bytes left out" in account
    assert "\nthe end\n" in account


@pytest.mark.parametrize("leave", [False, True], ids=["in its group", "in a session of its own"])
async def test_what_a_tool_started_ends_with_it(parts: RuntimeParts, *, leave: bool) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    child = cast("int", (await ask(runtime, running, "spawn", leave=leave))["child"])
    assert psutil.pid_exists(child)
    await runtime.stop(running)
    assert is_gone(child)


async def test_what_a_crashed_tool_started_ends_too(parts: RuntimeParts) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    child = cast("int", (await ask(runtime, running, "spawn"))["child"])
    psutil.Process(running.pid).kill()
    assert await runtime.ended(running) == "ended by SIGKILL (exit code -9)"
    assert is_gone(child)


async def test_a_tool_that_ends_at_start_says_why(parts: RuntimeParts) -> None:
    failure = await failing(runtime_of(parts), local_source("broken"))
    assert failure.error_type is ErrorType.UNAVAILABLE
    assert failure.details == {"exit_code": 7, "stderr": "the model file is missing"}


async def test_a_tool_that_never_becomes_healthy_is_ended(parts: RuntimeParts, state: Path) -> None:
    settings = dataclasses.replace(parts.local, start_timeout_s=1.0)
    failure = await failing(runtime_of(parts, settings), local_source("mute", health_path="/well"), "mute")
    assert failure.error_type is ErrorType.UNAVAILABLE
    assert (failure.details["health_path"], failure.details["waited_s"], failure.details["last_answer"]) == ("/well", 1.0, "status 503")
    assert "not well" in str(failure.details["stderr"])
    assert "Exit Code: -9\n" in (state / "tools/mute/last_run.log").read_text()


async def test_a_port_that_was_taken_while_the_tool_started_is_replaced(parts: RuntimeParts, state: Path) -> None:
    runtime, told = runtime_of(parts), list[str]()
    running = await runtime.start(tool("reluctant"), local_source("reluctant"), told.append)
    # This one has no health path either: 404 there, and anything below 500 elsewhere, is good enough.
    assert await runtime.call(running, local_source(), request_of()) == "served"
    tries = (state / "tools/reluctant/tries").read_text().split()
    assert (len(tries), tries[1], sum("taken" in text for text in told)) == (2, str(running.port), 1)
    await runtime.stop(running)


async def test_a_taken_port_is_not_even_tried(parts: RuntimeParts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], free := free_port()])
        runtime = runtime_of(parts, dataclasses.replace(parts.local, ports=lambda: next(ports)))
        running = await runtime.start(tool(), local_source(), silent)
    assert running.port == free
    await runtime.stop(running)


async def test_a_fixed_port_that_is_taken_is_said_plainly(parts: RuntimeParts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        failure = await failing(runtime_of(parts), local_source(internal_port=port))
    assert (failure.error_type, failure.details) == (ErrorType.UNAVAILABLE, {"ports": [port]})


async def test_a_fixed_port_is_used(parts: RuntimeParts) -> None:
    runtime, port = runtime_of(parts), free_port()
    running = await runtime.start(tool(), local_source(internal_port=port), silent)
    assert (running.port, running.endpoint) == (port, f"http://127.0.0.1:{port}")
    await runtime.stop(running)


async def test_a_stranger_that_answers_on_the_port_is_not_taken_for_the_tool(parts: RuntimeParts) -> None:
    failure = await failing(runtime_of(parts), local_source("daemonic", health_path="/"), "daemonic")
    assert failure.error_type is ErrorType.UNAVAILABLE
    assert len(cast("list[int]", failure.details["ports"])) == 3


@pytest.mark.parametrize("folder", ["../runtimes", "/etc", "versatile/../../..", "escape", "a\0b"])
async def test_a_folder_outside_the_data_folder_is_refused(parts: RuntimeParts, tmp_path: Path, folder: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "escape").symlink_to(PROJECTS / "versatile")
    failure = await failing(runtime_of(parts, dataclasses.replace(parts.local, data=data)), local_source(folder))
    assert failure.error_type is ErrorType.SECURITY_ERROR


async def test_a_project_may_lie_under_the_tools_of_the_state_directory(parts: RuntimeParts, state: Path) -> None:
    project = state / "tools/made/project"
    project.mkdir(parents=True)
    for name in ("main.py", "requirements.lock"):
        (project / name).write_bytes((PROJECTS / "versatile" / name).read_bytes())
    runtime = runtime_of(parts)
    running = await runtime.start(tool("made"), local_source(str(project)), silent)
    await runtime.stop(running)


@pytest.mark.parametrize("folder", ["nowhere", "."])
async def test_a_missing_project_is_a_dependency_error(parts: RuntimeParts, folder: str) -> None:
    failure = await failing(runtime_of(parts), local_source(folder))
    assert failure.error_type is ErrorType.DEPENDENCY_ERROR


async def test_a_start_that_is_cancelled_leaves_no_process(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(parts)
    starting = asyncio.create_task(runtime.start(tool("mute"), local_source("mute"), silent))
    log = state / "tools/mute/stderr.log"
    await eventually(lambda: log.exists() and "not well" in log.read_text())
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert "Exit Code: -9\n" in (state / "tools/mute/last_run.log").read_text()
