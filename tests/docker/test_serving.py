"""Serving containers: their rights, start, answers and end."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import JsonValue

from api.ports import LackingError
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Document, Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import RuntimeFailure, StartFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.door_supervisor import NoRoutes
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Vitals
from engine.runtimes.sandbox.egress import Egress
from engine.upkeep.tools.scheduling import EVICTION, KeepingLimits, idle_s_of
from tests.docker.conftest import TOOL, Book, containers_of, eventually, request_of, silent
from tests.docker.subject import built_versatile, docker_subject, versatile
from tests.runtimes.conformance import CHECKS
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SchedulingMode
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.shared_processes import place_of_volumes
from workers.host.containers import engine_check

Make = Callable[..., DockerRuntime]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_docker_runtime_conforms(runtime: DockerRuntime, settings: DockerSettings, check: str) -> None:
    assert await CHECKS[check](docker_subject(runtime, settings.state))


async def asked(runtime: DockerRuntime, source: DockerSource, mode: str) -> Any:
    running = await runtime.start(TOOL, source, silent)
    try:
        return await runtime.call(running, source, request_of(mode=mode))
    finally:
        await runtime.stop(running)


async def test_a_serving_container_is_closed_in(runtime: DockerRuntime, engine: Engine, settings: DockerSettings) -> None:
    running = await runtime.start(TOOL, versatile(), silent)
    (one,) = await containers_of(engine, settings)
    found = await engine.ask(lambda api: api.inspect_container(one["Id"]))
    host = found["HostConfig"]
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"]) == ("none", True, ["ALL"], False)
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]) == (1 << 30, 1 << 30, 10**9, 128)
    assert found["Config"]["User"] == settings.user
    assert {name: one["Labels"][f"org.tool-agent.{name}"] for name in ("tool", "version", "host", "owner")} == {
        "tool": "versatile",
        "version": "1.0.0",
        "host": "here",
        "owner": settings.owner.mark,
    }
    writable = [mount["Destination"] for mount in found["Mounts"] if mount["RW"]]
    assert writable == ["/home"]
    await runtime.stop(running)
    assert await containers_of(engine, settings) == []


async def test_a_source_says_its_limits_and_the_policy_caps_them(make_runtime: Make, engine: Engine, settings: DockerSettings) -> None:
    ceilings = settings.policy.ceilings.model_copy(update={"processes": 50})
    runtime = make_runtime(policy=settings.policy.model_copy(update={"ceilings": ceilings}))
    source = versatile(mem_limit="64m", nano_cpus=500_000_000, pids_limit=4000)
    running = await runtime.start(TOOL, source, silent)
    (one,) = await containers_of(engine, settings)
    host = (await engine.ask(lambda api: api.inspect_container(one["Id"])))["HostConfig"]
    assert (host["Memory"], host["NanoCpus"], host["PidsLimit"]) == (64 << 20, 500_000_000, 50)
    await runtime.stop(running)


async def test_the_environment_and_command_of_a_source_are_used(runtime: DockerRuntime) -> None:
    source = versatile(
        environment={"HOME": "/home", "COLOUR": "blue"}, command=["python3", "/app/main.py", "--port", "7777"], internal_port=7777
    )
    told = await asked(runtime, source, mode="environment")
    assert (told["COLOUR"], told["PORT"], "TOOL_AGENT_OWNER" in told) == ("blue", "7777", False)


async def test_an_image_that_is_nowhere_is_said_to_be_missing(runtime: DockerRuntime, engine: Engine, settings: DockerSettings) -> None:
    source = DockerSource(image="tool-agent-nowhere.invalid/nothing:1")
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, source, silent)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert failure.value.details == {"image": "tool-agent-nowhere.invalid/nothing:1"}
    assert await containers_of(engine, settings) == []


async def test_a_dockerfile_that_fails_tells_the_end_of_its_log(make_runtime: Make, tmp_path: Path) -> None:
    (tmp_path / "data" / "bad").mkdir(parents=True)
    (tmp_path / "data" / "bad" / "Dockerfile").write_text("FROM agent-sandbox:latest\nRUN echo so far so good && ls /nowhere\n")
    runtime = make_runtime(data=tmp_path / "data")
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, DockerSource(dockerfile="Dockerfile", host_dir="bad"), silent)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert "so far so good" in str(failure.value.details["log"])
    assert "No such file" in str(failure.value.details["log"])


@pytest.mark.parametrize(
    ("folder", "dockerfile"), [("../..", "Dockerfile"), ("versatile", "../Dockerfile"), ("versatile", "nowhere"), ("a\0b", "x")]
)
async def test_a_dockerfile_outside_its_folder_is_not_built(runtime: DockerRuntime, folder: str, dockerfile: str) -> None:
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, DockerSource(dockerfile=dockerfile, host_dir=folder), silent)
    assert failure.value.error_type in (ErrorType.SECURITY_ERROR, ErrorType.DEPENDENCY_ERROR)


async def test_a_container_that_is_gone_is_said_to_be(runtime: DockerRuntime) -> None:
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, DockerSource(container_id="0123456789ab", internal_port=80), silent)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert failure.value.details == {"container_id": "0123456789ab"}


@pytest.mark.parametrize("source", [DockerSource(), DockerSource(container_id="0123456789ab")])
async def test_a_source_that_says_too_little_is_invalid(runtime: DockerRuntime, source: DockerSource) -> None:
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, source, silent)
    assert failure.value.error_type is ErrorType.VALIDATION_ERROR


@pytest.mark.parametrize("volume", [{"/etc": "/etc2"}, {"home": "/proc"}, {"home": "relative"}, {"/nowhere/at/all": "/x"}, {"../x": "/x"}])
async def test_a_volume_that_is_not_allowed_is_refused(runtime: DockerRuntime, volume: dict[str, str]) -> None:
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, versatile(volumes=volume), silent)
    assert failure.value.error_type is ErrorType.SECURITY_ERROR


async def test_a_gpu_where_there_is_none_is_said_to_be_missing(runtime: DockerRuntime, engine: Engine, settings: DockerSettings) -> None:
    if "nvidia" in (await engine.ask(lambda api: api.info())).get("Runtimes", {}):
        pytest.skip("this machine has one")
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, versatile(use_gpu=True, gpu_count=1), silent)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert await containers_of(engine, settings) == []


async def test_a_server_that_ends_while_it_starts_tells_its_last_words(
    runtime: DockerRuntime, engine: Engine, settings: DockerSettings
) -> None:
    source = versatile(command=["python3", "-c", "import sys; sys.exit('no such luck')"])
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, source, silent)
    assert failure.value.error_type is ErrorType.UNAVAILABLE
    assert "no such luck" in str(failure.value.details["log"])
    assert await containers_of(engine, settings) == []


async def test_a_server_that_never_answers_is_given_up(make_runtime: Make, engine: Engine, settings: DockerSettings) -> None:
    with pytest.raises(StartFailed) as failure:
        await make_runtime(start_timeout_s=2.0).start(TOOL, versatile(command=["sleep", "60"]), silent)
    assert failure.value.error_type is ErrorType.UNAVAILABLE
    assert await containers_of(engine, settings) == []


async def test_a_start_that_is_cancelled_leaves_no_container(runtime: DockerRuntime, engine: Engine, settings: DockerSettings) -> None:
    said: list[str] = []
    start = asyncio.create_task(runtime.start(TOOL, versatile(command=["sleep", "60"]), said.append))
    await eventually(lambda: "starting a container for versatile" in said)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert await containers_of(engine, settings) == []


async def test_a_tool_that_takes_all_memory_is_ended_and_it_is_said_why(
    runtime: DockerRuntime, engine: Engine, settings: DockerSettings
) -> None:
    source = versatile(mem_limit="64m")
    running = await runtime.start(TOOL, source, silent)
    ended = asyncio.create_task(runtime.ended(running))
    with pytest.raises(RuntimeFailure):
        await runtime.call(running, source, request_of(mode="flood", bytes=500_000_000))
    assert "memory" in await asyncio.wait_for(ended, 60)
    assert not await runtime.is_alive(running)
    assert await containers_of(engine, settings) == []


async def test_an_unused_container_is_stopped_after_its_time(make_runtime: Make, engine: Engine, settings: DockerSettings) -> None:
    supervisor = Supervisor({"docker": make_runtime(ttl_s=1.0)}, NoRoutes(), "here")
    entry = ToolEntry(manifest=TOOL, sources=(versatile(),))
    call = asyncio.create_task(supervisor.call(Dispatch(entry, request_of(mode="slow", until="now"))))
    begun = settings.state / "volumes" / place_of_volumes("versatile") / "home/hanging"
    await eventually(begun.exists)
    (kept,) = supervisor.keeping.all()
    assert idle_s_of(SchedulingMode.COLD, kept, KeepingLimits(300.0, 5, EVICTION["lru"])) == 1.0
    assert (await kept.vitals(5.0)).holds == 1
    assert not await supervisor.keeping.retire(kept)
    await asyncio.to_thread(begun.with_name("now").touch)
    await call
    assert await kept.vitals(5.0) == Vitals(is_well=True)
    assert await supervisor.keeping.retire(kept)
    assert await containers_of(engine, settings) == []
    await supervisor.close()


async def test_a_container_that_somebody_made_and_the_policy_names_serves_and_is_left_there(
    make_runtime: Make, engine: Engine, settings: DockerSettings
) -> None:
    config: Document = {
        "Image": "agent-sandbox:latest",
        "Cmd": ["python3", "-m", "http.server", "8123", "--bind", "0.0.0.0"],  # noqa: S104 - the container's own
        "ExposedPorts": {"8123/tcp": {}},
        "Labels": {"org.tool-agent.state": settings.owner.state},
    }
    made = await engine.ask(lambda api: api.create_container_from_config(config, f"given-{settings.owner.state}"))
    source = DockerSource(container_id=made["Id"], internal_port=8123, http_method="GET", health_path="/")
    runtime = make_runtime(policy=settings.policy.model_copy(update={"containers": ("given-*",)}))
    running = await runtime.start(TOOL, source, silent)
    assert await runtime.is_alive(running)
    await runtime.stop(running)
    (left,) = await containers_of(engine, settings)
    assert left["State"] == "exited"


async def test_a_new_worker_finds_what_a_killed_one_left_and_sweeps_the_rest(
    make_runtime: Make, engine: Engine, settings: DockerSettings
) -> None:
    before = make_runtime()
    kept = await before.start(TOOL, versatile(), silent)
    await before.start(TOOL.model_copy(update={"version": "0.9.0"}), versatile(), silent)
    await before.close()  # as a killed worker leaves it: containers run, nobody minds the sockets

    after = make_runtime()
    assert {marks.version for marks in await after.found()} == {"1.0.0", "0.9.0"}
    said: list[str] = []
    again = await after.start(TOOL, versatile(), said.append)
    assert (again.endpoint, again.pid) == (kept.endpoint, kept.pid)
    assert said[-1] == "found the container of versatile that was left"
    assert len(await after.sweep()) == 1
    assert cast("dict[str, JsonValue]", await after.call(again, versatile(), request_of(x=1)))["echo"] == {"x": 1}
    await after.stop(again)
    assert await containers_of(engine, settings) == []


async def test_the_end_of_what_it_said_is_its_log(runtime: DockerRuntime) -> None:
    running = await runtime.start(TOOL, versatile(), silent)
    await runtime.call(running, versatile(), request_of(mode="shout", lines=3))
    await runtime.stop(running)
    (log,) = runtime.parts.settings.kept.glob("tools/*/last_run.log")
    assert log.read_text().endswith(f"{'y' * 1023}\nthe end\n")


async def test_what_is_noted_of_a_container(make_runtime: Make, book: Book, engine: Engine, settings: DockerSettings) -> None:
    first = make_runtime()
    await first.start(TOOL, built_versatile(mem_limit="64m"), silent)
    await first.start(TOOL.model_copy(update={"version": "0.9.0"}), built_versatile(), silent)
    (up, old), after = book.noted, make_runtime()
    await first.close()
    running = await after.start(TOOL, built_versatile(mem_limit="64m"), silent)
    await after.sweep()
    await after.stop(running)
    found, swept, stopped = book.noted[2:]
    home = {str(settings.state / "volumes" / place_of_volumes("versatile") / "home"): "/home"}
    assert (up.tool_id, up.status, up.mem_limit, up.nano_cpus, up.volumes) == ("versatile", "running", str(64 << 20), 10**9, home)
    assert up.image.startswith("tool-agent/tool/versatile:")
    assert found == up
    assert [one.model_copy(update={"destroyed_at": None, "status": up.status}) for one in (swept, stopped)] == [old, up]
    assert {(one.status, one.destroyed_at is None) for one in (swept, stopped)} == {("destroyed", False)}


async def test_without_an_engine_a_tool_is_unavailable(settings: DockerSettings, http: HttpExchange, tmp_path: Path) -> None:
    nowhere = Engine({"DOCKER_HOST": f"unix://{tmp_path}/nowhere.sock"})
    runtime = DockerRuntime(DockerParts(settings, nowhere, Egress(settings.state)), http)
    with pytest.raises(StartFailed) as failure:
        await runtime.start(TOOL, DockerSource(image="agent-sandbox:latest"), silent)
    assert failure.value.error_type is ErrorType.UNAVAILABLE
    with pytest.raises(LackingError) as lacking:
        await engine_check({"docker": runtime})()
    assert "No such file" in str(lacking.value)
    assert str(tmp_path) not in str(lacking.value)
    nowhere.close()
    await runtime.close()


async def test_an_engine_that_is_there_is_said_to_be(runtime: DockerRuntime) -> None:
    await engine_check({"docker": runtime})()
