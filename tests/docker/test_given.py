"""Containers that sources name by id: a tool may use those made for it, and no others."""

from dataclasses import replace

import pytest

from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker.serving.given import GivenContainers
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Document, Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from tests.docker.conftest import TOOL, containers_of, silent
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource


async def made_by_somebody(engine: Engine, settings: DockerSettings) -> str:
    config: Document = {
        "Image": "agent-sandbox:latest",
        "Cmd": ["sleep", "300"],
        "Labels": {"org.tool-agent.state": settings.owner.state},  # for it to be removed after the test
    }
    return str((await engine.ask(lambda api: api.create_container_from_config(config, f"postgres-{settings.owner.state}")))["Id"])


async def test_a_container_of_somebody_else_is_refused_and_not_started(
    runtime: DockerRuntime, engine: Engine, settings: DockerSettings
) -> None:
    made = await made_by_somebody(engine, settings)
    for name in (made, made[:12], f"postgres-{settings.owner.state}"):
        with pytest.raises(StartFailed) as failure:
            await runtime.start(TOOL, DockerSource(container_id=name, internal_port=5432), silent)
        assert (failure.value.error_type, failure.value.details) == (ErrorType.SECURITY_ERROR, {"container_id": name})
    assert [one["State"] for one in await containers_of(engine, settings)] == ["created"]


@pytest.mark.parametrize("name", ["../images/agent-sandbox", "x/../../info", "a?b", "", "a b", "x" * 200])
async def test_what_is_no_name_is_never_asked_for(runtime: DockerRuntime, name: str) -> None:
    for source in (DockerSource(container_id=name, internal_port=1), DockerSource(image=f"../containers/{name}")):
        with pytest.raises(StartFailed) as failure:
            await runtime.start(TOOL, source, silent)
        assert failure.value.error_type is ErrorType.VALIDATION_ERROR


async def test_the_policy_names_those_that_a_tool_may_have(engine: Engine, settings: DockerSettings) -> None:
    made = await made_by_somebody(engine, settings)
    for pattern, allowed in (("postgres-*", True), ("postgres", False), (made, False)):
        policy = settings.policy.model_copy(update={"containers": (pattern,)})
        given = GivenContainers(container_parts(replace(settings, policy=policy), engine))
        if allowed:
            assert not (await given.find("tool", made, 5432)).endpoint
        else:
            with pytest.raises(StartFailed):
                await given.find("tool", made, 5432)


async def test_a_tool_has_its_own_build_container_and_no_other_tool_has_it(engine: Engine, settings: DockerSettings) -> None:
    policy = settings.policy.model_copy(update={"containers": ("*",)})
    parts = container_parts(replace(settings, policy=policy), engine)
    containers = BuildContainers(parts)
    made = await containers.create(Wishes("flask_api", ports=(8000,)), silent)
    given = GivenContainers(parts)
    assert (await given.find("flask_api", made.container_id, 8000)).endpoint == f"http://127.0.0.1:{made.port_mapping['8000']}"
    with pytest.raises(StartFailed) as failure:
        await given.find("another", made.container_id, 8000)
    assert failure.value.error_type is ErrorType.SECURITY_ERROR
    await containers.destroy(made.container_id)
    await containers.close()
