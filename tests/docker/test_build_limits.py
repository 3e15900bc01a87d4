"""The bounds of a build: its folder, its limits, and no image made for another tool."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.runtimes.docker.building.build_context import build_context
from engine.runtimes.docker.building.images import Images
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from tests.docker.conftest import silent
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource

SOURCE = DockerSource(dockerfile="Dockerfile", host_dir="built")
Make = Callable[..., Images]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "built").mkdir(parents=True)
    return tmp_path / "data" / "built"


@pytest.fixture
def images(settings: DockerSettings, engine: Engine, folder: Path) -> Images:
    given = replace(settings, data=folder.parent)
    return Images(container_parts(given, engine))


LOOK = r"""
RUN echo "FILES $(ulimit -n)" && echo "CORE $(ulimit -c)" && \
    echo "CPU $(cat /sys/fs/cgroup/cpu.max 2>/dev/null || cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us)" && exit 9
"""


async def test_the_steps_of_a_build_have_limits(images: Images, folder: Path, settings: DockerSettings) -> None:
    (folder / "Dockerfile").write_text(f"FROM agent-sandbox:latest\n{LOOK}")
    with pytest.raises(StartFailed) as failure:
        await images.of("built", SOURCE, (), silent)
    told = dict(re.findall(r"^(FILES|CORE|CPU) (\d+)", str(failure.value.details["log"]), re.MULTILINE))
    assert told == {"FILES": str(settings.policy.ceilings.open_files), "CORE": "0", "CPU": "100000"}


async def test_what_was_built_for_a_tool_is_nobody_elses_image_by_any_name(images: Images, folder: Path) -> None:
    (folder / "Dockerfile").write_text("FROM agent-sandbox:latest\nENV SECRET=1\n")
    made = await images.of("built", SOURCE, (), silent)
    for name in (made.name, f"docker.io/{made.name}", made.image_id, made.image_id.removeprefix("sha256:")[:12]):
        with pytest.raises(StartFailed) as failure:
            await images.of("other", DockerSource(image=name), (), silent)
        assert (failure.value.error_type, failure.value.details) == (ErrorType.SECURITY_ERROR, {"image": name})
        (folder / "Dockerfile").write_text(f"FROM {name}\n")
        with pytest.raises(StartFailed):
            await images.of("other", SOURCE, (), silent)


@pytest.mark.parametrize("named", [".", "built/..", "../data"])
async def test_the_data_folder_itself_is_nobodys(images: Images, folder: Path, named: str) -> None:
    (folder.parent / "Dockerfile").write_text("FROM agent-sandbox:latest\n")
    with pytest.raises(StartFailed) as failure:
        await images.of("built", SOURCE.model_copy(update={"host_dir": named}), (), silent)
    assert failure.value.error_type is ErrorType.SECURITY_ERROR


def test_a_list_of_what_is_ignored_need_not_be_text(folder: Path) -> None:
    (folder / ".dockerignore").write_bytes(b"\xff\xfe\nignored\n")
    (folder / "ignored").write_bytes(b"x" * 100)
    build_context(folder, "FROM scratch\n", 50).close()


def test_a_list_of_what_is_ignored_has_a_bound(folder: Path) -> None:
    (folder / ".dockerignore").write_bytes(b"a\n" * 100_000)
    with pytest.raises(StartFailed) as failure:
        build_context(folder, "FROM scratch\n", None)
    assert failure.value.details == {"file": ".dockerignore"}


def test_what_is_built_from_has_a_bound(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StartFailed) as failure:
        build_context(folder, "FROM scratch\n", 1 << 30)
    assert failure.value.details == {"bytes": 1 << 40, "most": 1 << 30}
