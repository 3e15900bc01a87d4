"""The variables and limits of a container: secrets stay hidden, and an image gets nothing undeclared."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.runtimes.docker.serving.account import account_of, serving_limits
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from engine.runtimes.sandbox.identities import COUNTED_TOGETHER
from engine.runtimes.sandbox.identity import Identity
from engine.runtimes.variables import variables_of
from tests.docker.conftest import PROJECTS, SECRETS, TOOL, containers_of, request_of, silent
from tests.docker.subject import built_versatile, versatile
from toolagent.contracts.calls import ErrorType

KEY = SECRETS["SERVICE_KEY"]


async def test_a_secret_reaches_the_tool_and_an_image_no_disk_and_the_engine_shows_neither(
    make_runtime: Callable[..., DockerRuntime], engine: Engine, settings: DockerSettings, tmp_path: Path
) -> None:
    shutil.copytree(PROJECTS / "versatile", tmp_path / "data/versatile")
    with (tmp_path / "data/versatile/Dockerfile").open("a") as file:
        file.write("VOLUME /left /home\n")
    runtime = make_runtime(data=tmp_path / "data")
    source = built_versatile(
        environment={"HOME": "/home", "TOKEN": "secret:SERVICE_KEY", "COLOUR": "blue"},
        nano_cpus=8 * 10**9,  # within the policy, and more than the machine has
    )
    running = await runtime.start(TOOL, source, silent)
    told = cast("dict[str, str]", await runtime.call(running, source, request_of(mode="environment")))
    assert (told["TOKEN"], told["COLOUR"]) == (KEY, "blue")
    written = await runtime.call(running, source, request_of(mode="write", paths=["/left/x"]))
    assert written == {"/left/x": "done"}
    (one,) = await containers_of(engine, settings)
    found = await engine.ask(lambda api: api.inspect_container(one["Id"]))
    shown = json.dumps(found)
    assert ("hunter2" in shown, "SERVICE_KEY" in shown) == (False, False)
    assert {mount["Destination"]: mount["Type"] for mount in found["Mounts"]}["/left"] == "tmpfs"
    assert "volume" not in {mount["Type"] for mount in found["Mounts"]}
    assert found["HostConfig"]["NanoCpus"] <= await engine.processors() * 10**9
    assert not [*(settings.state / "containers").iterdir()]
    await runtime.stop(running)


def test_fewer_cores_than_were_asked_for_are_told(settings: DockerSettings) -> None:
    limits = serving_limits(TOOL, versatile(nano_cpus=4 * 10**9), settings, 2)
    account = account_of(TOOL, settings, limits)
    (told,) = [one for one in account.differences if one.item == "limits.cpus"]
    assert (limits.nano_cpus, told.requested, told.enforced, account.enforced.limits.cpus) == (2 * 10**9, 4.0, 2.0, 2.0)
    assert serving_limits(TOOL, versatile(nano_cpus=1), settings, 2).nano_cpus == 10**7


def test_the_account_says_when_all_containers_are_one_user(settings: DockerSettings) -> None:
    limits = serving_limits(TOOL, versatile(), settings, 2)
    told = [COUNTED_TOGETHER in account_of(TOOL, replace(settings, identity=who), limits).differences for who in (None, Identity(7, 7))]
    assert told == [True, False]


def test_secrets_are_resolved_where_a_catalog_file_names_them() -> None:
    source = versatile(environment={"A": "secret:SERVICE_KEY", "B": "http://h/?key=secret:SERVICE_KEY&x=1", "C": "a secret: X"})
    variables = variables_of(source, "tool", SECRETS.get)
    assert variables.plain == {"C": "a secret: X"}
    assert variables.secret == {"A": KEY, "B": "http://h/?key=hunter2%20%26%20more%0Alines&x=1"}
    assert "hunter2" not in repr(variables)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"environment": {"A": "secret:NOT_THERE"}}, ErrorType.DEPENDENCY_ERROR),
        ({"command": ("serve", "secret:SERVICE_KEY")}, ErrorType.VALIDATION_ERROR),
        ({"command": ("serve", "http://h/?key=secret:SERVICE_KEY")}, ErrorType.VALIDATION_ERROR),
    ],
)
def test_a_secret_that_cannot_be_given_is_said(more: dict[str, object], kind: ErrorType) -> None:
    with pytest.raises(StartFailed) as failure:
        variables_of(versatile(**more), "tool", SECRETS.get)
    assert failure.value.error_type is kind
