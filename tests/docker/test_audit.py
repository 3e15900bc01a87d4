"""The audit of a serving container."""

from dataclasses import replace

import pytest

from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.http.exchange import HttpExchange
from tests.docker.conftest import TOOL, Notes, request_of, silent
from tests.docker.subject import built_versatile, versatile
from tests.parts import container_parts
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxLevel, SandboxPolicy


async def test_each_start_and_call_leaves_a_line_with_what_the_proxy_refused(
    settings: DockerSettings, engine: Engine, http: HttpExchange, notes: Notes
) -> None:
    asked = {"networkAccess": {"allowHosts": ["allowed.invalid"]}, "fileAccess": {"allowRead": ["/srv/data"]}}
    tool = ToolManifest.model_validate({**TOOL.model_dump(), "securityContext": asked})
    given = replace(settings, policy=SandboxPolicy(hosts=("*",), read=("/srv",)))
    parts = container_parts(given, engine, audit=notes)
    runtime = DockerRuntime(parts, http)
    try:
        running = await runtime.start(tool, built_versatile(), silent)
        await runtime.call(
            running, built_versatile(), request_of(mode="fetch", url="http://elsewhere.invalid/", times=1, api_key="nobody may see")
        )
        await runtime.stop(running)
    finally:
        await runtime.close()
    built, started, called = notes.entries
    assert (built.action, built.outcome, started.action, started.outcome, called.action, called.outcome, called.call_id) == (
        "build",
        "success",
        "start",
        "success",
        "call",
        "success",
        "call-12345678",
    )
    assert [text.partition(": ")[0] for text in called.refusals] == ["elsewhere.invalid:80"]
    assert called.params["api_key"] == "***"
    assert called.sandbox is not None
    assert (called.sandbox.level, called.sandbox.enforced.hosts) == (SandboxLevel.DOCKER, ("allowed.invalid",))
    assert called.sandbox.enforced.read == ()
    assert [(one.item, one.requested) for one in called.sandbox.differences] == [("read", ["/srv/data"])]
    assert called.sandbox.enforced.limits.memory_bytes == 1 << 30


@pytest.mark.parametrize(("observed", "seen"), [(True, ["elsewhere.invalid:80"]), (False, [])])
async def test_of_one_that_may_reach_nobody_it_is_known_whom_it_asks_for_if_it_is_observed(
    settings: DockerSettings, engine: Engine, http: HttpExchange, notes: Notes, observed: bool, seen: list[str]
) -> None:
    given = replace(settings, observed=observed)
    runtime = DockerRuntime(container_parts(given, engine, audit=notes), http)
    try:
        running = await runtime.start(TOOL, versatile(), silent)
        await runtime.call(running, versatile(), request_of(mode="fetch", url="http://elsewhere.invalid/", times=1))
        await runtime.stop(running)
    finally:
        await runtime.close()
    assert [text.partition(": ")[0] for text in notes.entries[-1].refusals] == seen
