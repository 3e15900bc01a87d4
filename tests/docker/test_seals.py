"""Our containers and images are recognised by seals, which cannot be forged, unlike names and labels."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.images import Images
from engine.runtimes.docker.serving.given import GivenContainers
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker.serving.sandbox_level import ContainerLevel
from engine.runtimes.docker_engine.engine import Api, Document, Engine, EngineUnavailable
from engine.runtimes.docker_engine.labels import SEAL, STATE, Kind, Marks
from engine.runtimes.docker_engine.leftovers import names_of, sweep_gone
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.docker_engine.serving_containers import created
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from tests.docker.conftest import containers_of, silent
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource

T = TypeVar("T")


async def made(engine: Engine, name: str, labels: dict[str, str]) -> str:
    config: Document = {"Image": "agent-sandbox:latest", "Cmd": ["true"], "Labels": labels}
    return str((await engine.ask(lambda api: api.create_container_from_config(config, name)))["Id"])


async def swept(engine: Engine, settings: DockerSettings, make_runtime: Callable[..., DockerRuntime], etc: Path) -> None:
    """Run everything that looks for leftovers of workers."""
    await make_runtime().sweep()
    await ContainerLevel(etc, engine, settings.owner, None).sweep()
    builds = BuildContainers(container_parts(settings, engine))
    for one in await builds.find():
        await builds.destroy(one.container_id)
    await builds.close()
    await sweep_gone(engine, settings.seals)


async def test_what_only_says_that_it_is_ours_is_left_and_what_nobody_noted_is_found(
    engine: Engine, settings: DockerSettings, make_runtime: Callable[..., DockerRuntime], tmp_path: Path
) -> None:
    dead, strangers = replace(settings.owner, pid=2**22 - 3), set[str]()
    for kind in Kind:
        marks = Marks(kind, f"stranger-{kind}-{dead.state}", "versatile", "1.0.0", "here", dead.mark)
        told = {
            **settings.labels(marks),
            SEAL: settings.image_labels[SEAL],
        }  # all that an image of ours can hand down, and all that is known
        strangers.add(await made(engine, marks.name, told))
        ours = replace(marks, name=f"ours-{kind}-{dead.state}")
        await made(engine, ours.name, settings.labels(ours))
        # Its name is in the labels of something that is to go.
        lying = replace(marks, name=f"stranger-{kind}-{dead.state}", tool="other")
        await made(engine, f"lying-{kind}-{dead.state}", settings.labels(lying))
    assert {name.split("-")[0] for name in await names_of(engine, settings)} == {"ours", "stranger"}
    await swept(engine, settings, make_runtime, settings.state / "etc")
    assert {str(one["Id"]) for one in await containers_of(engine, settings)} == strangers


async def test_a_stranger_that_says_that_it_is_a_tools_build_container_is_not_given(engine: Engine, settings: DockerSettings) -> None:
    marks = Marks(Kind.BUILD, "x", "flask_api", "", "here", settings.owner.mark)
    container = await made(engine, f"stranger-{settings.owner.state}", {**settings.origin.labels, **marks.labels})
    given = GivenContainers(container_parts(settings, engine))
    with pytest.raises(StartFailed) as failure:
        await given.find("flask_api", container, 80)
    assert failure.value.error_type is ErrorType.SECURITY_ERROR


async def test_an_image_with_labels_of_ours_is_nobodys_base(engine: Engine, settings: DockerSettings) -> None:
    name = f"stranger-{settings.owner.state}"
    labels = f"LABEL org.tool-agent.name=postgres {STATE}={settings.owner.state}"
    await engine.ask(lambda api: api.import_image_from_data(b"\0" * 1024, repository=name, tag="1", changes=[labels]))
    images = Images(container_parts(settings, engine))
    with pytest.raises(StartFailed) as failure:
        await images.of("tool", DockerSource(image=f"{name}:1"), (), silent)
    assert failure.value.error_type is ErrorType.SECURITY_ERROR


async def test_a_container_that_the_engine_made_and_could_not_tell_us_of_is_removed(engine: Engine, settings: DockerSettings) -> None:
    class Deaf(Engine):
        has_heard = True

        async def ask(self, what: Callable[[Api], T], timeout_s: float | None = None) -> T:
            answer = await super().ask(what, timeout_s)
            if self.has_heard:
                self.has_heard = False
                raise EngineUnavailable("no answer")
            return answer

    marks = Marks(Kind.SERVING, "x", "tool", "", "here", settings.owner.mark)
    config: Document = {"Image": "agent-sandbox:latest", "Cmd": ["true"], "Labels": settings.labels(marks)}
    deaf = Deaf()
    with pytest.raises(EngineUnavailable):
        await created(deaf, config, f"unheard-{settings.owner.state}")
    deaf.close()
    assert await containers_of(engine, settings) == []


def test_the_key_stays_and_is_for_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    first, other = Seals.of(tmp_path / "a"), Seals.of(tmp_path / "b")
    assert (tmp_path / "a/seal").stat().st_mode & 0o777 == 0o600
    assert first.key == (tmp_path / "a/seal").read_text() == other.key  # what `a` left is known to be ours when it is gone
    (tmp_path / "c").mkdir()
    (tmp_path / "c/seal").write_text("everybody's")
    (tmp_path / "c/seal").chmod(0o644)
    with pytest.raises(OSError, match="not ours alone"):
        Seals.of(tmp_path / "c")


@pytest.mark.parametrize("left", ["", "ab12", "é" * 32])
def test_what_a_crash_left_of_a_key_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    for file in (tmp_path / "states/tool-agent/seal", tmp_path / "state/seal"):
        file.parent.mkdir(parents=True)
        file.touch(mode=0o600)
        file.write_text(left)
    seals = Seals.of(tmp_path / "state")
    assert len(seals.key) == 64
    assert seals.known == (seals.key,)
    assert seals.key == (tmp_path / "state/seal").read_text() == (tmp_path / "states/tool-agent/seal").read_text()
