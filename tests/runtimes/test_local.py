"""A uv project of this machine, served by a local process."""

import asyncio
import dataclasses
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import psutil
import pytest
from pydantic import JsonValue

from engine.runtimes.failures import StartFailed
from engine.runtimes.http.exchange import Health
from engine.runtimes.http.readiness import serves
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.box import Box, Prepared
from engine.runtimes.process.ownership import Owner
from engine.runtimes.runtime import Running
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import Sandbox
from tests.parts import sandboxing
from tests.runtimes.conftest import PROJECTS, eventually, home_of, inside, is_gone, leftovers, local_source, request_of, silent
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import SecurityContext, ToolManifest
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import LocalSource
from workers.host.sandbox import identities


def runtime_of(parts: RuntimeParts, settings: LocalSettings | None = None) -> LocalRuntime:
    return LocalRuntime(settings or parts.local, parts.launcher, parts.sandboxing, parts.http)


def tool(tool_id: str = "versatile", context: SecurityContext | None = None) -> ToolManifest:
    return ToolManifest(tool_id=tool_id, name=tool_id, security_context=context or SecurityContext())


async def failing(runtime: LocalRuntime, source: LocalSource, tool_id: str = "versatile") -> StartFailed:
    with pytest.raises(StartFailed) as caught:
        await runtime.start(tool(tool_id), source, silent)
    return caught.value


async def ask(runtime: LocalRuntime, running: Running, mode: str, **params: JsonValue) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", await runtime.call(running, local_source(), request_of(120.0, mode=mode, **params)))


async def test_a_tool_gets_its_own_environment_and_nothing_of_the_workers(parts: RuntimeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_AGENT_SECRET_KEY", "of the worker")
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    seen = await ask(runtime, running, "environment")
    await runtime.stop(running)
    added = {"PWD", "LC_CTYPE"}
    assert {name: value for name, value in seen.items() if name not in added} == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/home/tool",
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
    assert lines[1:] == ["Exit Code: 143", "--- STDOUT ---", served.strip(), "--- STDERR ---", ""]
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
    before = inside(running.pid)
    await ask(runtime, running, "spawn", leave=leave)
    [child] = inside(running.pid) - before
    await runtime.stop(running)
    assert is_gone(child)
    assert leftovers(parts.local.state) == []


async def test_what_a_crashed_tool_started_ends_too(parts: RuntimeParts) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    await ask(runtime, running, "spawn")
    there = inside(running.pid)
    psutil.Process(running.pid).kill()
    assert await runtime.ended(running) == "ended by SIGKILL (exit code -9)"
    assert all(map(is_gone, there))
    assert leftovers(parts.local.state) == []


async def test_a_tool_that_ends_at_start_says_why(parts: RuntimeParts) -> None:
    failure = await failing(runtime_of(parts), local_source("broken"))
    assert failure.error_type is ErrorType.UNAVAILABLE
    assert failure.details == {"exit_code": 7, "stderr": "the model file is missing"}
    assert leftovers(parts.local.state) == []


async def test_a_tool_that_never_becomes_healthy_is_ended(parts: RuntimeParts, state: Path) -> None:
    failure, waited_s = await _unhealthy(parts)
    assert failure.error_type is ErrorType.UNAVAILABLE
    assert (failure.details["health_path"], failure.details["waited_s"], failure.details["last_answer"]) == (
        "/well",
        waited_s,
        "status 503",
    )
    assert "not well" in str(failure.details["stderr"])
    assert "Exit Code: -9\n" in (state / "tools/mute/last_run.log").read_text()


async def _unhealthy(parts: RuntimeParts) -> tuple[StartFailed, float]:
    """The failure of a start that got an unhealthy answer in time, and that time, which is longer on a busy machine."""
    source = local_source("mute", health_path="/well")
    for waited_s in (1.0, 5.0, 25.0):
        failure = await failing(runtime_of(parts, dataclasses.replace(parts.local, start_timeout_s=waited_s)), source, "mute")
        if failure.details["last_answer"] != "no answer":
            return failure, waited_s
    raise AssertionError("It never answered.")


async def test_a_tool_without_a_health_path_serves_when_it_answers_at_all(parts: RuntimeParts) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool("reluctant"), local_source("reluctant"), silent)
    assert await runtime.call(running, local_source(), request_of()) == "served"
    await runtime.stop(running)


@pytest.mark.parametrize(
    ("path", "status", "ready"), [("/health", 307, True), ("/health", 401, True), ("/health", 503, False), ("/well", 307, False)]
)
async def test_where_no_health_path_was_declared_whoever_answers_serves(
    parts: RuntimeParts, path: str, status: int, *, ready: bool
) -> None:
    assert await serves(Health(status, None), path, "unix:/nowhere", parts.http) is ready


async def test_a_port_is_the_tools_own_whoever_has_it_on_this_machine(parts: RuntimeParts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        runtime, source = runtime_of(parts), local_source(internal_port=port)
        both = [await runtime.start(tool(tool_id), source, silent) for tool_id in ("versatile", "second")]
        taken.setblocking(False)
        for running in both:
            assert running.port == port
            assert await ask(runtime, running, "reach", port=port) == "done"  # itself
        with pytest.raises(BlockingIOError):
            taken.accept()
        for running in both:
            await runtime.stop(running)


@pytest.mark.promise("tools-see-only-their-own")
async def test_a_tool_reaches_no_port_of_this_machine(parts: RuntimeParts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        runtime = runtime_of(parts)
        running = await runtime.start(tool(), local_source(), silent)
        assert await ask(runtime, running, "reach", port=ours.getsockname()[1]) == "ConnectionRefusedError"
        await runtime.stop(running)


@pytest.mark.promise("tools-see-only-their-own")
async def test_a_tool_writes_to_its_home_and_scratch_and_nowhere_else(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(), local_source(), silent)
    where = await ask(runtime, running, "where")
    allowed, refused = ["mine", "/tmp/mine"], [f"{where['project']}/main.py", f"{where['prefix']}/mine", "/etc/mine", "/usr/mine", "/mine"]  # noqa: S108
    written = await ask(runtime, running, "write", paths=[*allowed, *refused])
    hidden = [state / "tools", state / "sandbox", PROJECTS / "broken"]
    seen = await ask(runtime, running, "read", paths=[*map(str, hidden), "/home/tool/mine"])
    await runtime.stop(running)
    assert [path for path, how in written.items() if how == "done"] == allowed
    assert (home_of(state) / "mine").read_text() == "x"
    assert [path for path, how in seen.items() if how == "done"] == ["/home/tool/mine"]
    assert (PROJECTS / "versatile/main.py").stat().st_size > 1


async def test_a_folder_of_this_machine_is_written_only_with_the_policys_word(parts: RuntimeParts, state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "granted"
    folder.mkdir()
    folder.chmod(0o777)  # it stays whose it is
    asking = SecurityContext.model_validate({"fileAccess": {"allowWrite": [f"{folder}/**"]}})
    policies = SandboxPolicy(), SandboxPolicy(write=(f"{folder}/**",))
    for policy, said in zip(policies, ("FileNotFoundError", "done"), strict=True):
        under = dataclasses.replace(parts, sandboxing=sandboxing(state, parts.launcher, parts.local.state / "environments", policy))
        runtime = runtime_of(under)
        running = await runtime.start(tool(context=asking), local_source(), silent)
        assert await ask(runtime, running, "write", paths=[f"{folder}/x"]) == {f"{folder}/x": said}
        await runtime.stop(running)
    assert (folder / "x").read_text() == "x"


async def test_a_variable_is_seen_when_asked_for_and_allowed(parts: RuntimeParts) -> None:
    runtime = runtime_of(parts)
    running = await runtime.start(tool(context=SecurityContext.model_validate({"environment": ["TZ", "SECRET"]})), local_source(), silent)
    seen = await ask(runtime, running, "environment")
    await runtime.stop(running)
    assert (seen.get("TZ"), seen.get("SECRET")) == ("UTC", None)


class Told:
    """An audit in memory."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def note(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


async def test_what_the_proxy_refuses_is_noted_with_the_call_however_much_was_asked_before(parts: RuntimeParts) -> None:
    audit = Told()
    runtime = runtime_of(dataclasses.replace(parts, sandboxing=dataclasses.replace(parts.sandboxing, audit=audit)))
    asking = SecurityContext.model_validate({"networkAccess": {"allowHosts": ["example.invalid"]}})
    running = await runtime.start(tool(context=asking), local_source(), silent)
    for mode, times in (("ok", 1), ("fetch", 1), ("fetch", 1001), ("fetch", 1), ("ok", 1)):
        await ask(runtime, running, mode, url="http://elsewhere.invalid/", times=times)
    await runtime.stop(running)
    assert [entry.action for entry in audit.entries] == ["start", *["call"] * 5]
    assert [["elsewhere.invalid:80" in text for text in entry.refusals] for entry in audit.entries[1:]] == [[], [True], [True], [True], []]


@pytest.mark.promise("no-sandbox-no-code")
async def test_without_a_sandbox_no_tool_is_run(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(dataclasses.replace(parts, sandboxing=dataclasses.replace(parts.sandboxing, sandbox="none works here")))
    failure = await failing(runtime, local_source())
    assert (failure.error_type, failure.details) == (ErrorType.UNAVAILABLE, {"missing": "sandbox"})
    assert not home_of(state).exists()


@pytest.mark.parametrize("folder", ["../runtimes", "/etc", "versatile/../../..", "escape", "a\0b", "."])
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


async def test_a_missing_project_is_a_dependency_error(parts: RuntimeParts) -> None:
    failure = await failing(runtime_of(parts), local_source("nowhere"))
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
    assert leftovers(state) == []


class Held(Bubblewrap):
    """A level whose preparation waits for the test, and that records its begin and end."""

    def __init__(self, state: Path) -> None:
        super().__init__(state / "sandbox/etc", Cgroups(Owner.of_this_process(state)), identities())
        self.begun, self.go, self.done = threading.Event(), threading.Event(), threading.Event()

    def _prepare(self, argv: Sequence[str], box: Box) -> Prepared:  # pyright: ignore[reportIncompatibleMethodOverride] - as wide as needed
        self.begun.set()
        self.go.wait(20)
        try:
            return super()._prepare(argv, box)
        finally:
            self.done.set()


async def test_a_start_that_is_cancelled_while_its_sandbox_is_prepared_leaves_nothing(parts: RuntimeParts, state: Path) -> None:
    level = Held(state)
    sandbox = Sandbox(level, SandboxPolicy())
    runtime = runtime_of(dataclasses.replace(parts, sandboxing=dataclasses.replace(parts.sandboxing, sandbox=sandbox)))
    starting = asyncio.create_task(runtime.start(tool(), local_source(), silent))
    await eventually(level.begun.is_set)
    starting.cancel()
    await asyncio.sleep(0)
    level.go.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await eventually(level.done.is_set)
    assert leftovers(state) == []


async def test_a_tool_killed_while_it_starts_leaves_nothing(parts: RuntimeParts, state: Path) -> None:
    runtime = runtime_of(parts)
    starting = asyncio.create_task(runtime.start(tool("mute"), local_source("mute"), silent))
    log = state / "tools/mute/stderr.log"
    await eventually(lambda: log.exists() and "not well" in log.read_text())
    [outer] = [int(one) for one in leftovers(state) if one.isdigit() and not is_gone(int(one))][:1]
    psutil.Process(outer).kill()
    with pytest.raises(StartFailed) as caught:
        await starting
    assert caught.value.details["exit_code"] == -9
    assert leftovers(state) == []
