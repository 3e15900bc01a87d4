"""Build containers: commands, ports, rebuilding, and that they outlive a worker."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from engine.network.ports import free_port
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.environments.indexes import Index
from engine.runtimes.failures import StartFailed
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.sandbox.egress import Egress
from tests.docker.conftest import TOOL, Book, Notes, containers_of, eventually, silent
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource, ScriptLanguage
from toolagent_service.calls.shared_processes import place_of_volumes
from toolagent_service.contracts.containers import ContainerStatus

PLAIN = Wishes("flask_api")


INDEX = {
    ScriptLanguage.PYTHON: Index(
        ("allowed.invalid",), {"UV_DEFAULT_INDEX": "https://allowed.invalid/simple", "UV_INDEX": "https://me:secret@other.invalid/"}
    ),
    ScriptLanguage.NODEJS: Index(("npm.invalid",), {"npm_config_registry": "https://npm.invalid/"}),
}


async def said(containers: BuildContainers, container_id: str, log: str) -> str:
    return (await containers.run(container_id, ["cat", log], 15)).stdout


async def indexes(language: ScriptLanguage) -> Index:
    return INDEX[language]


@pytest_asyncio.fixture
async def make(settings: DockerSettings, engine: Engine, book: Book, notes: Notes) -> AsyncGenerator[Callable[..., BuildContainers]]:
    made: list[BuildContainers] = []

    def new(**changed: object) -> BuildContainers:
        given = replace(settings, **changed)  # pyright: ignore[reportArgumentType] - as the fields are named
        egress = Egress(given.state, identity=given.identity)
        containers = BuildContainers(DockerParts(given, engine, egress, indexes, audit=notes, book=book))
        made.append(containers)
        return containers

    yield new
    for containers in made:
        for info in await containers.find():
            with contextlib.suppress(StartFailed):  # a later worker's, by now
                await containers.destroy(info.container_id)
        await containers.close()


@pytest.fixture
def containers(make: Callable[..., BuildContainers]) -> BuildContainers:
    return make()


async def test_a_command_runs_and_tells_how_it_ended(containers: BuildContainers) -> None:
    made = await containers.create(PLAIN, silent)
    ran = await containers.run(made.container_id[:12], ["sh", "-c", "echo out; echo err >&2; id -u; exit 3"], 20)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, "out\n0\n", "err\n")
    assert (await containers.run(made.container_id, ["no-such-program"], 20)).exit_code in (126, 127)


async def test_files_stay_between_commands(containers: BuildContainers) -> None:
    made = await containers.create(PLAIN, silent)
    await containers.run(made.container_id, ["sh", "-c", "echo kept > /srv-file"], 20)
    assert (await containers.run(made.container_id, ["cat", "/srv-file"], 20)).stdout == "kept\n"


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(containers: BuildContainers) -> None:
    made = await containers.create(PLAIN, silent)
    ran = await containers.run(made.container_id, ["sh", "-c", "sleep 300 & echo begun; sleep 300"], 1)
    assert (ran.exit_code, ran.stdout) == (124, "begun\n")
    assert "sleep" not in (await containers.run(made.container_id, ["ps"], 20)).stdout


async def test_a_flood_of_output_is_cut(make: Callable[..., BuildContainers], settings: DockerSettings) -> None:
    defaults = settings.policy.defaults.model_copy(update={"output_bytes": 1000})
    containers = make(policy=settings.policy.model_copy(update={"defaults": defaults}))
    made = await containers.create(PLAIN, silent)
    ran = await containers.run(made.container_id, ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"], 20)
    assert ran.exit_code == 0
    assert (ran.stdout[:1000], len(ran.stdout) < 1100) == ("x" * 1000, True)


async def test_a_command_in_the_background_leaves_its_output_in_a_file(containers: BuildContainers) -> None:
    made = await containers.create(PLAIN, silent)
    log = await containers.run_in_background(made.container_id, ["sh", "-c", "echo first; echo second >&2; echo done"])
    async with asyncio.timeout(60):
        while "done" not in await said(containers, made.container_id, log):  # noqa: ASYNC110 - it happens elsewhere
            await asyncio.sleep(0.05)
    assert await said(containers, made.container_id, log) == "first\nsecond\ndone\n"


async def test_its_programs_are_told_the_package_index_but_no_password(containers: BuildContainers) -> None:
    made = await containers.create(replace(PLAIN, environment={"npm_config_registry": "https://own.invalid/"}), silent)
    lines = (await containers.run(made.container_id, ["env"], 20)).stdout.splitlines()
    told = {"UV_DEFAULT_INDEX=https://allowed.invalid/simple", "PIP_INDEX_URL=https://allowed.invalid/simple"}
    assert {line for line in lines if "invalid" in line} == told | {"npm_config_registry=https://own.invalid/"}


async def test_each_command_leaves_a_line_with_what_the_proxy_refused(containers: BuildContainers, notes: Notes) -> None:
    made = await containers.create(PLAIN, silent)
    fetch = (
        "import urllib.request as r, sys\ntry: r.urlopen('https://' + sys.argv[1], timeout=5)\nexcept OSError: sys.exit(int(sys.argv[2]))"
    )
    await containers.run(made.container_id, ["python3", "-c", fetch, "one.invalid", "3"], 20)
    await containers.run(made.container_id, ["sleep", "60"], 0.5)
    log = await containers.run_in_background(made.container_id, ["sh", "-c", 'python3 -c "$0" two.invalid 0; echo end', fetch])
    async with asyncio.timeout(60):
        while "end" not in await said(containers, made.container_id, log):  # noqa: ASYNC110 - it happens elsewhere
            await asyncio.sleep(0.05)
    first, late, background, *_ = notes.entries
    told = [(one.action, one.tool_id, one.host, one.command[0], one.outcome, one.message) for one in (first, late, background)]
    assert told == [
        ("build", "flask_api", "here", "python3", "error", "The exit code was 3."),
        ("build", "flask_api", "here", "sleep", "timeout", "The exit code was 124."),
        ("start", "flask_api", "here", "sh", "success", ""),
    ]
    assert [refused.partition(": ")[0] for refused in first.refusals] == ["one.invalid:443"]
    assert "two.invalid:443" in {refused.partition(": ")[0] for one in notes.entries[2:] for refused in one.refusals}


async def test_what_was_refused_after_the_last_command_has_a_line_too(
    containers: BuildContainers, settings: DockerSettings, notes: Notes
) -> None:
    made = await containers.create(replace(PLAIN, volumes={"out": "/out"}), silent)
    asking = "import time, urllib.request as r, pathlib\ntime.sleep(1)\ntry: r.urlopen('https://late.invalid', timeout=5)\n"
    text = asking + "except OSError: pathlib.Path('/out/end').touch()"
    await containers.run_in_background(made.container_id, ["python3", "-c", text])
    await eventually((settings.state / "volumes" / place_of_volumes("flask_api") / "out" / "end").exists)
    await containers.destroy(made.container_id)
    assert [refused.partition(": ")[0] for refused in notes.entries[-1].refusals] == ["late.invalid:443"]


async def answered(url: str) -> str:
    async with asyncio.timeout(60), httpx.AsyncClient() as client:
        while True:
            try:
                return (await client.get(url)).text
            except httpx.HTTPError:
                await asyncio.sleep(0.1)


async def test_a_port_is_published_and_a_rebuild_publishes_another_with_the_same_files(
    make: Callable[..., BuildContainers], engine: Engine, settings: DockerSettings
) -> None:
    start = free_port()
    containers = make(port_start=start)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", start))
        made = await containers.create(replace(PLAIN, ports=(8000,)), silent)
        assert made.port_mapping["8000"] > start
    await containers.run(made.container_id, ["sh", "-c", "mkdir /srv; echo hello > /srv/page"], 20)
    new = await containers.rebuild(made.container_id, (8000, 9000), mem_limit="256m")
    assert set(new.port_mapping) == {"8000", "9000"}
    assert (new.container_id != made.container_id, new.image, new.mem_limit) == (True, made.image, "256m")
    await containers.run_in_background(new.container_id, ["python3", "-m", "http.server", "8000", "--directory", "/srv"])
    assert await answered(f"http://127.0.0.1:{new.port_mapping['8000']}/page") == "hello\n"
    assert [one["Id"] for one in await containers_of(engine, settings)] == [new.container_id]
    await containers.destroy(new.container_id)
    assert await engine.ask(lambda api: api.images(filters={"label": f"org.tool-agent.state={settings.owner.state}"})) == []


@pytest.mark.parametrize("ports", [(), (8000,)])
async def test_there_is_no_way_out_but_the_proxy(containers: BuildContainers, ports: tuple[int, ...]) -> None:
    made = await containers.create(replace(PLAIN, ports=ports), silent)
    with socket.create_server(("0.0.0.0", 0)) as ours:  # noqa: S104 - that it is not reached is what is shown
        port = ours.getsockname()[1]
        for address in (("1.1.1.1", 80), ("127.0.0.1", port), ("172.17.0.1", port), ("host.docker.internal", port)):
            text = f"import socket; socket.create_connection({address!r}, 3)"
            assert (await containers.run(made.container_id, ["python3", "-c", text], 20)).exit_code == 1


async def test_hosts_beyond_the_policy_are_not_reached(make: Callable[..., BuildContainers], settings: DockerSettings) -> None:
    containers = make(policy=settings.policy.model_copy(update={"hosts": ("allowed.invalid",)}))
    made = await containers.create(replace(PLAIN, hosts=("beyond.invalid",)), silent)
    text = "import urllib.request as r\ntry: r.urlopen('https://beyond.invalid', timeout=5)\nexcept Exception as e: print(e)"
    assert "403" in (await containers.run(made.container_id, ["python3", "-c", text], 20)).stdout


async def test_a_tool_in_a_build_container_is_called_by_its_port_and_found_again(
    make: Callable[..., BuildContainers], settings: DockerSettings, engine: Engine, http: HttpExchange
) -> None:
    before = make()
    made = await before.create(replace(PLAIN, ports=(8000,), volumes={"data": "/data"}, mem_limit="128m"), silent)
    await before.run_in_background(made.container_id, ["python3", "-m", "http.server", "8000"])
    # Its first process may still be starting, and has its ports from us.
    await answered(f"http://127.0.0.1:{made.port_mapping['8000']}/")
    await before.close()

    parts = container_parts(settings, engine)
    after, runtime = BuildContainers(parts), DockerRuntime(parts, http)
    try:
        (found,) = await after.find()
        assert found.model_copy(update={"created_at": made.created_at}) == made
        source = DockerSource(container_id=made.container_id, internal_port=8000, http_method="GET", health_path="/")
        running = await runtime.start(TOOL.model_copy(update={"tool_id": "flask_api"}), source, silent)
        assert running.endpoint == f"http://127.0.0.1:{made.port_mapping['8000']}"
    finally:
        await runtime.close()
        await after.destroy(made.container_id)
        await after.close()


async def test_the_proxy_lets_the_index_through_and_nobody_else(make: Callable[..., BuildContainers]) -> None:
    containers = make()
    made = await containers.create(PLAIN, silent)
    text = "import urllib.request as r\ntry: r.urlopen('https://refused.invalid', timeout=5)\nexcept Exception as e: print(e)"
    assert "403" in (await containers.run(made.container_id, ["python3", "-c", text], 20)).stdout


async def test_what_is_noted_of_a_container(containers: BuildContainers, book: Book) -> None:
    made = await containers.create(PLAIN, silent)
    gone = await containers.destroy(made.container_id)
    assert book.noted == [made, gone]
    assert (made.status, gone.status) == (ContainerStatus.RUNNING, ContainerStatus.DESTROYED)
    assert (made.image, made.mem_limit, made.nano_cpus) == ("agent-sandbox:latest", "1g", 10**9)


async def test_a_container_that_was_destroyed_is_said_to_be_gone(containers: BuildContainers) -> None:
    made = await containers.create(PLAIN, silent)
    await containers.destroy(made.container_id)
    with pytest.raises(StartFailed) as failure:
        await containers.run(made.container_id, ["true"], 5)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR


async def test_it_outlives_its_worker_and_is_found_with_its_files(make: Callable[..., BuildContainers]) -> None:
    before = make()
    made = await before.create(PLAIN, silent)
    await before.run(made.container_id, ["sh", "-c", "echo kept > /file"], 20)
    await before.close()
    after = make()
    assert [info.container_id for info in await after.find()] == [made.container_id]
    assert (await after.run(made.container_id, ["cat", "/file"], 20)).stdout == "kept\n"


async def test_one_that_is_not_used_goes_after_its_time(
    make: Callable[..., BuildContainers], engine: Engine, settings: DockerSettings
) -> None:
    containers = make(ttl_s=1.0)
    await containers.create(PLAIN, silent)
    async with asyncio.timeout(60):
        while await containers_of(engine, settings):
            await containers.destroy_unused()
            await asyncio.sleep(0.1)


async def test_a_command_in_the_background_keeps_it(make: Callable[..., BuildContainers], engine: Engine, settings: DockerSettings) -> None:
    containers = make(ttl_s=1.0)
    made = await containers.create(replace(PLAIN, volumes={"out": "/out"}), silent)
    await containers.run_in_background(made.container_id, ["sh", "-c", "sleep 5; echo done > /out/end"])
    await eventually((settings.state / "volumes" / place_of_volumes("flask_api") / "out" / "end").exists)
    async with asyncio.timeout(60):
        while await containers_of(engine, settings):
            await containers.destroy_unused()
            await asyncio.sleep(0.1)


async def test_it_goes_later_when_it_could_not_be_written_down(
    make: Callable[..., BuildContainers], engine: Engine, settings: DockerSettings, book: Book
) -> None:
    containers = make(ttl_s=1.0)
    made = await containers.create(PLAIN, silent)
    book.away = 2
    async with asyncio.timeout(60):
        while await containers_of(engine, settings):
            await containers.destroy_unused()
            await asyncio.sleep(0.1)
    assert (book.away, book.noted[0], book.noted[-1].status) == (0, made, ContainerStatus.DESTROYED)


async def test_its_volume_is_a_folder_of_the_tool(containers: BuildContainers, settings: DockerSettings) -> None:
    made = await containers.create(replace(PLAIN, volumes={"models": "/models"}), silent)
    await containers.run(made.container_id, ["sh", "-c", "echo big > /models/one"], 20)
    folder: Path = settings.state / "volumes" / place_of_volumes("flask_api") / "models"
    assert (folder / "one").read_text() == "big\n"
