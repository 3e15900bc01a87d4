"""Folders of the machine in containers: a tool's links do not lead out of them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker_engine.binds import bind
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.image import Image
from engine.runtimes.docker_engine.limits import ContainerLimits
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.docker_engine.volumes import image_mounts, renamed_volumes, volume_mounts
from engine.runtimes.failures import StartFailed
from tests.docker.conftest import containers_of, silent
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent_service.calls.shared_processes import place_of_volumes

LIMITS = ContainerLimits(1 << 30, 10**9, 10, 4096, 10)
Allow = Callable[..., DockerSettings]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared" / "inner" / "deep").mkdir(parents=True)
    return tmp_path / "shared"


@pytest.fixture
def allow(settings: DockerSettings) -> Allow:
    def allow(read: tuple[Path, ...] = (), write: tuple[Path, ...] = ()) -> DockerSettings:
        update = {"read": tuple(f"{one}/**" for one in read), "write": tuple(map(str, write))}
        return replace(settings, policy=settings.policy.model_copy(update=update))

    return allow


def refused(volume: Path, settings: DockerSettings) -> None:
    with pytest.raises(StartFailed) as failure:
        volume_mounts({str(volume): "/b"}, "tool", settings)
    assert (failure.value.error_type, failure.value.details) == (ErrorType.SECURITY_ERROR, {"volume": str(volume)})


def test_a_folder_of_the_policy_is_mounted_and_who_is_root_only_reads_it(shared: Path, allow: Allow) -> None:
    given = allow(write=(shared,))
    assert volume_mounts({str(shared): "/a"}, "tool", given) == [bind(shared, "/a", writable=True)]
    assert volume_mounts({str(shared): "/a"}, "tool", given, as_root=True) == [bind(shared, "/a")]


def test_what_lies_in_a_folder_that_tools_write_to_is_refused_as_they_could_replace_it(shared: Path, allow: Allow) -> None:
    refused(shared / "inner", allow(write=(shared,)))
    refused(shared / "inner", allow(read=(shared / "inner",), write=(shared,)))
    refused(shared / "inner" / "deep", allow(write=(shared, shared / "inner" / "deep")))


def test_a_folder_that_nobody_writes_to_may_be_looked_into_at_any_depth(shared: Path, allow: Allow) -> None:
    deep = shared / "inner" / "deep"
    assert volume_mounts({str(deep): "/a"}, "tool", allow(read=(shared,))) == [bind(deep, "/a")]


@pytest.mark.parametrize(
    "target", ["//dev", "/./proc", "//proc/sys", "/x//../proc", "/proc/", "//", "/.", "/dev/./shm", "/run/tool-agent", "/a\nb"]
)
def test_a_place_that_is_ours_is_refused_however_it_is_written(settings: DockerSettings, target: str) -> None:
    with pytest.raises(StartFailed) as failure:
        volume_mounts({"data": target}, "tool", settings)
    assert failure.value.error_type is ErrorType.SECURITY_ERROR
    with pytest.raises(StartFailed):
        image_mounts(Image("sha256:x", "x", (), {}, (), volumes=(target,)), [], LIMITS)


def test_no_two_tools_share_a_folder(settings: DockerSettings) -> None:
    folders = {volume_mounts({"data": "//data/"}, tool_id, settings)[0]["Source"] for tool_id in ("a:b", "a_b", "a-b", "a")}
    assert len(folders) == 4
    assert volume_mounts({"data": "//data/"}, "a", settings)[0]["Target"] == "/data"


def test_folders_of_earlier_releases_become_those_of_the_one_tool_that_can_have_made_them(tmp_path: Path) -> None:
    for name in ("a_b", "c_d", "e", "of_nobody"):
        (tmp_path / name / "data").mkdir(parents=True)
    renamed_volumes(tmp_path, ["a:b", "a_b", "c:d", "e"])
    renamed_volumes(tmp_path, ["a:b", "a_b", "c:d", "e"])
    assert {one.name for one in tmp_path.iterdir()} == {"a_b", place_of_volumes("c:d"), place_of_volumes("e"), "of_nobody"}


def test_volumes_of_an_image_are_in_memory_and_few() -> None:
    made = image_mounts(
        Image("sha256:x", "x", (), {}, (), volumes=("/a", "/a/", "/b", "/var/tmp")),  # noqa: S108 - the container's own
        [bind(Path("/x"), "/b")],
        LIMITS,
    )
    assert made == [{"Type": "tmpfs", "Target": "/a", "TmpfsOptions": {"SizeBytes": 4096, "Mode": 0o1777}}]
    with pytest.raises(StartFailed):
        image_mounts(Image("sha256:x", "x", (), {}, (), volumes=tuple(f"/{n}" for n in range(17))), [], LIMITS)


def test_a_link_to_a_folder_is_judged_by_where_it_leads(shared: Path, allow: Allow, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    refused(tmp_path / "link", allow(write=(shared,)))


async def test_root_in_a_build_container_leaves_nothing_in_a_folder_of_the_machine(shared: Path, allow: Allow, engine: Engine) -> None:
    given = allow(write=(shared,))
    containers = BuildContainers(container_parts(given, engine))
    made = await containers.create(Wishes("flask_api", volumes={str(shared): "/a"}), silent)
    assert (await containers.run(made.container_id, ["cp", "/bin/sh", "/a/sh"], 20)).exit_code == 1
    assert {one.name for one in await asyncio.to_thread(lambda: list(shared.iterdir()))} == {"inner"}
    await containers.destroy(made.container_id)
    await containers.close()


async def test_a_container_whose_folder_the_policy_no_longer_names_is_not_started_again(
    shared: Path, allow: Allow, engine: Engine, settings: DockerSettings
) -> None:
    given = allow(write=(shared,))
    before = BuildContainers(container_parts(given, engine))
    made = await before.create(Wishes("flask_api", volumes={str(shared): "/a"}), silent)
    await before.close()
    await engine.ask(lambda api: api.stop(made.container_id, timeout=1))
    after = BuildContainers(container_parts(settings, engine))
    assert await after.find() == ()
    assert [one["State"] for one in await containers_of(engine, settings)] == ["exited"]
    await after.close()
