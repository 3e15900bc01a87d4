"""Images of Dockerfiles: the network of a build, and the removal of unneeded images."""

import asyncio
import contextvars
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.runtimes.docker.building.images import Images
from engine.runtimes.docker_engine.engine import Document, Engine
from engine.runtimes.docker_engine.labels import STATE, Kind, Marks
from engine.runtimes.docker_engine.leftovers import sweep_gone
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.environments.indexes import Index
from engine.runtimes.failures import StartFailed
from tests.docker.conftest import Notes, containers_of, silent
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource, ScriptLanguage

BASE = "FROM agent-sandbox:latest\n"
SOURCE = DockerSource(dockerfile="Dockerfile", host_dir="built")
NOWHERE = Index()

Make = Callable[..., Images]


@pytest.fixture
def make(settings: DockerSettings, engine: Engine, tmp_path: Path, notes: Notes) -> Make:
    (tmp_path / "data" / "built").mkdir(parents=True)

    def make(index: Index = NOWHERE, **changed: object) -> Images:
        async def indexes(language: ScriptLanguage) -> Index:
            return index

        given = replace(settings, data=tmp_path / "data", **changed)  # pyright: ignore[reportArgumentType] - as the fields are named
        return Images(container_parts(given, engine, indexes=indexes, audit=notes))

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    def write(*lines: str, **files: str) -> None:
        for name, text in {"Dockerfile": BASE + "\n".join(lines) + "\n", **files}.items():
            (tmp_path / "data" / "built" / name).write_text(text)

    return write


async def images_of(engine: Engine, settings: DockerSettings) -> list[Document]:
    """All images of the test's state directory except the empty one."""
    found = await engine.ask(lambda api: api.images(filters={"label": f"{STATE}={settings.owner.state}"}))
    return [one for one in found if not any("tool-agent/empty" in tag for tag in one.get("RepoTags") or ())]


@asynccontextmanager
async def listening() -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A server on all addresses of this machine; yields what it received."""
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "0.0.0.0") as server:  # noqa: S104 - that it is not reached is what is shown
        yield server.sockets[0].getsockname()[1], heard


REACH = """
import json, socket
reached = []
for address in json.load(open("/reach.json")):
    try:
        socket.create_connection(address, 3)
        reached.append(address)
    except OSError:
        pass
assert not reached
"""


async def test_a_build_reaches_nothing_of_this_machine_and_nothing_beyond(make: Make, write: Callable[..., None]) -> None:
    async with listening() as (port, heard):
        addresses = [["127.0.0.1", port], ["172.17.0.1", port], ["1.1.1.1", 80]]
        write("COPY . /", "RUN python3 /reach.py", **{"reach.py": REACH, "reach.json": json.dumps(addresses)})
        assert (await make().of("built", SOURCE, (), silent)).image_id
    assert heard == []


ASK = """
import http.client, os, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
for url in sys.argv[1:]:
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=10)
    connection.request("GET", url)
    print("ANSWER", connection.getresponse().status)
sys.exit(9)
"""


async def test_a_build_reaches_the_package_index_and_the_hosts_of_its_tool(make: Make, write: Callable[..., None], notes: Notes) -> None:
    async with listening() as (index, _), listening() as (other, heard):
        asked = f"http://127.0.0.1:{index}/ http://127.0.0.1:{other}/ http://refused.invalid/"
        write("COPY ask.py /", f"RUN python3 /ask.py {asked}", **{"ask.py": ASK})
        with pytest.raises(StartFailed) as failure:
            await make(Index((f"127.0.0.1:{index}",))).of("built", SOURCE, (f"127.0.0.1:{other}",), silent)
    told = str(failure.value.details["log"])
    # The second is allowed, and is at an address that is not public: only the index may be there.
    assert [line.split()[1] for line in told.splitlines() if line.startswith("ANSWER")] == ["200", "403", "403"]
    assert heard == []
    (entry,) = notes.entries
    assert (entry.action, entry.tool_id, entry.host, entry.outcome) == ("build", "built", "here", "error")
    assert (entry.command, entry.error_type) == (("docker", "build", "--file", "Dockerfile"), ErrorType.DEPENDENCY_ERROR)
    assert [refused.partition(": ")[0] for refused in entry.refusals] == [f"127.0.0.1:{other}", "refused.invalid:80"]


async def test_a_build_that_succeeds_leaves_a_line_too(make: Make, write: Callable[..., None], notes: Notes) -> None:
    write("RUN true")
    await make().of("built", SOURCE, (), silent)
    (entry,) = notes.entries
    assert (entry.action, entry.outcome, entry.refusals, entry.duration_s > 0) == ("build", "success", (), True)


async def test_the_steps_of_a_build_are_told_the_package_index_but_no_password(make: Make, write: Callable[..., None]) -> None:
    variables = {
        "UV_INDEX_URL": "https://mine.invalid/simple",
        "UV_INDEX": "https://me:secret@other.invalid/",
        "npm_config_@a:registry": "x",
    }
    write("RUN env; exit 9", "FROM agent-sandbox:latest")
    with pytest.raises(StartFailed) as failure:
        await make(Index((), variables)).of("built", SOURCE, (), silent)
    told = {line for line in str(failure.value.details["log"]).splitlines() if "=" in line and "invalid" in line}
    assert told == {"UV_INDEX_URL=https://mine.invalid/simple", "PIP_INDEX_URL=https://mine.invalid/simple"}


@pytest.mark.parametrize("line", ["ADD http://127.0.0.1:1/x /x", "COPY --from=tool-agent/tool/other:x /x /x"])
async def test_what_a_dockerfile_may_not_ask_of_the_engine_is_refused(
    make: Make, write: Callable[..., None], line: str, engine: Engine, settings: DockerSettings
) -> None:
    write(line)
    with pytest.raises(StartFailed) as failure:
        await make().of("built", SOURCE, (), silent)
    assert (failure.value.error_type, failure.value.details) == (ErrorType.SECURITY_ERROR, {"dockerfile": "Dockerfile"})
    assert await images_of(engine, settings) == []


async def test_who_is_told_of_a_build_is_told_in_its_own_context(make: Make, write: Callable[..., None]) -> None:
    whose = contextvars.ContextVar("whose", default="nobody's")
    whose.set("ours")
    told: list[tuple[str, bool]] = []
    write("ENV A=1")
    await make().of("built", SOURCE, (), lambda said: told.append((whose.get(), said.startswith("Step "))))
    assert ("ours", True) in told
    assert {context for context, _ in told} == {"ours"}


async def test_an_image_that_a_dockerfile_begins_with_must_be_there(make: Make, write: Callable[..., None]) -> None:
    write(Dockerfile="FROM tool-agent-nowhere.invalid/nothing:1\n")
    with pytest.raises(StartFailed) as failure:
        await make().of("built", SOURCE, (), silent)
    assert failure.value.details == {"image": "tool-agent-nowhere.invalid/nothing:1"}


async def test_a_build_that_fails_leaves_nothing(make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings) -> None:
    write("ENV A=1", "RUN echo step > /made", "RUN exit 3")
    with pytest.raises(StartFailed):
        await make().of("built", SOURCE, (), silent)
    assert await images_of(engine, settings) == []
    assert await containers_of(engine, settings) == []


async def test_a_build_that_takes_too_long_is_ended_and_leaves_nothing(
    make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings
) -> None:
    write("RUN sleep 300")
    with pytest.raises(StartFailed) as failure:
        await make(build_timeout_s=5.0).of("built", SOURCE, (), silent)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert await containers_of(engine, settings) == []
    assert await images_of(engine, settings) == []


async def test_a_build_that_is_cancelled_leaves_nothing(
    make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings
) -> None:
    write("RUN sleep 300")
    runs = asyncio.Event()
    build = asyncio.create_task(make().of("built", SOURCE, (), lambda said: runs.set() if "RUN sleep" in said else None))
    await asyncio.wait_for(runs.wait(), 60)
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    assert await containers_of(engine, settings) == []
    assert await images_of(engine, settings) == []


async def test_an_image_that_is_built_anew_takes_the_place_of_the_old_one(
    make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings
) -> None:
    images = make()
    write("ENV A=1")
    first = await images.of("built", SOURCE, (), silent)
    write("ENV A=2")
    second = await images.of("built", SOURCE, (), silent)
    assert [one["Id"] for one in await images_of(engine, settings)] == [second.image_id] != [first.image_id]


async def test_the_sweep_removes_images_of_versions_that_are_gone_and_no_others(
    make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings
) -> None:
    images = make()
    write("ENV A=1", Other=BASE + "ENV A=2\n")
    kept = await images.of("built", SOURCE, (), silent)
    await images.of("built", SOURCE.model_copy(update={"dockerfile": "Other"}), (), silent)
    await images.of("removed", SOURCE, (), silent)
    known = {"built": (SOURCE,)}

    async def sources_of(tool_id: str) -> tuple[DockerSource, ...]:
        return known.get(tool_id, ())

    assert len(await images.sweep(sources_of)) == 2
    assert [one["Id"] for one in await images_of(engine, settings)] == [kept.image_id]
    assert await images.sweep(sources_of) == ()


async def test_the_image_of_a_candidate_stays_while_it_is_young_and_that_of_a_tool_that_was_removed_goes(
    make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings
) -> None:
    images, known = make(), {"built": (SOURCE,)}

    async def sources_of(tool_id: str) -> tuple[DockerSource, ...]:
        return known.get(tool_id, ())

    assert await images.sweep(sources_of) == ()  # as a service that starts
    write("ENV A=1")
    await images.of("built", SOURCE, (), silent)
    candidate = await images.of("candidate", SOURCE, (), silent)
    assert await images.sweep(sources_of) == ()
    known.clear()
    assert len(await images.sweep(sources_of)) == 1
    assert [one["Id"] for one in await images_of(engine, settings)] == [candidate.image_id]
    # A service that starts anew has no candidates.
    assert len(await make().sweep(sources_of)) == 1


async def test_what_belongs_to_a_state_directory_that_is_gone_is_removed(
    make: Make, write: Callable[..., None], engine: Engine, settings: DockerSettings, tmp_path: Path
) -> None:
    write("ENV A=1")
    dead = replace(settings.owner, pid=2**22 - 3)
    await make(owner=dead).of("built", SOURCE, (), silent)
    labels = settings.labels(Marks(Kind.BUILD, "x", "built", "", "here", dead.mark))
    config: Document = {"Image": "agent-sandbox:latest", "Cmd": ["true"], "Labels": labels}
    await engine.ask(lambda api: api.create_container_from_config(config, dead.state))
    await sweep_gone(engine, settings.seals)
    assert (len(await containers_of(engine, settings)), len(await images_of(engine, settings))) == (1, 1)
    settings.state.rename(tmp_path / "elsewhere")
    assert dead.state in await sweep_gone(engine, settings.seals)
    assert (await containers_of(engine, settings), await images_of(engine, settings)) == ([], [])


async def test_what_a_killed_worker_was_building_is_removed(engine: Engine, settings: DockerSettings) -> None:
    dead = replace(settings.owner, pid=2**22 - 3)
    labels = settings.labels(Marks(Kind.GATE, "x", "built", "", "here", dead.mark))
    gate: Document = {"Image": "agent-sandbox:latest", "Cmd": ["sleep", "60"], "Labels": labels, "HostConfig": {"NetworkMode": "none"}}
    made = str((await engine.ask(lambda api: api.create_container_from_config(gate, f"gate-{dead.state}")))["Id"])
    await engine.ask(lambda api: api.start(made))
    step: Document = {"Image": "agent-sandbox:latest", "Cmd": ["sleep", "60"], "HostConfig": {"NetworkMode": f"container:{made}"}}
    await engine.ask(lambda api: api.create_container_from_config(step, f"step-{dead.state}"))
    assert {f"gate-{dead.state}", f"step-{dead.state}"} <= set(await sweep_gone(engine, settings.seals))
