"""Each docker tool has its own user, and keeps it while a container of it exists."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import pytest

from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker.serving.users import user_of
from engine.runtimes.docker_engine.engine import Api, Engine, EngineRefused
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.failures import StartFailed
from engine.runtimes.sandbox.identities import DEFAULT_UIDS, Identities
from engine.runtimes.sandbox.identity import PAYLOAD, owner_of
from tests.docker.conftest import TOOL, containers_of, request_of, silent
from tests.docker.subject import versatile
from tests.parts import container_parts
from toolagent.contracts.calls import ErrorType
from toolagent_service.calls.shared_processes import place_of_volumes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="An ordinary user has one user for all containers, which it says in its account.")

T = TypeVar("T")
Make = Callable[..., DockerRuntime]
UIDS = DEFAULT_UIDS[-3:]
"""The far end: services of this machine that run meanwhile begin anywhere, and these are few."""


def users_in(folder: Path, uids: range = UIDS) -> Identities:
    """Makes users as a restarted service would, or another service of the machine."""
    return Identities(uids, folder / "users")


async def user_in_use(engine: Engine, settings: DockerSettings) -> str:
    (one,) = await containers_of(engine, settings)
    return str((await engine.ask(lambda api: api.inspect_container(one["Id"])))["Config"]["User"])


async def test_what_one_tool_takes_of_the_kernel_its_neighbour_still_has(make_runtime: Make, tmp_path: Path) -> None:
    runtime, source = make_runtime(users_in(tmp_path)), versatile(volumes={}, environment={})
    one = await runtime.start(TOOL, source, silent)
    other = await runtime.start(TOOL.model_copy(update={"tool_id": "other"}), source, silent)
    taken = await runtime.call(one, source, request_of(mode="take"))
    assert isinstance(taken, list)
    assert all(taken)
    assert await runtime.call(other, source, request_of(mode="take")) == taken
    await runtime.stop(one)
    await runtime.stop(other)


async def test_a_container_that_is_found_again_keeps_its_user_and_one_whose_user_is_another_s_is_made_anew(
    make_runtime: Make, engine: Engine, settings: DockerSettings, tmp_path: Path
) -> None:
    source = versatile(volumes={"home": "/home"})
    before = make_runtime(users_in(tmp_path))
    made = await before.start(TOOL, source, silent)
    await before.call(made, source, request_of(mode="write", paths=["mine"]))
    user = await user_in_use(engine, settings)
    await before.close()

    again = make_runtime(users_in(tmp_path))
    found = await again.start(TOOL, source, silent)
    assert (found.pid, await user_in_use(engine, settings)) == (made.pid, user)
    with (tmp_path / "users" / user.partition(":")[0]).open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    await again.close()

    strangers = users_in(tmp_path)
    for taken in [strangers.take(tmp_path / f"stranger {number}") for number in range(len(UIDS))]:
        if f"{taken.identity.uid}:{taken.identity.gid}" != user:
            taken.release()
    after = make_runtime(users_in(tmp_path))
    anew = await after.start(TOOL, source, silent)
    assert anew.pid != made.pid
    assert await user_in_use(engine, settings) != user
    assert await after.call(anew, source, request_of(mode="write", paths=["mine"])) == {"mine": "done"}
    await after.stop(anew)


class Stubborn(Engine):
    """An engine that removes no container while it `refuses`."""

    refuses = True

    async def ask(self, what: Callable[[Api], T], timeout_s: float | None = None) -> T:
        def asked(api: Api) -> T:
            return what(cast("Api", _Kept(api)) if self.refuses else api)

        return await super().ask(asked, timeout_s)


class _Kept:
    def __init__(self, api: Api) -> None:
        self._api = api

    def __getattr__(self, name: str) -> object:
        if name == "remove_container":
            raise EngineRefused("removal of container is already in progress")
        return getattr(self._api, name)


async def test_a_container_that_starts_in_vain_and_cannot_be_removed_keeps_its_user_until_it_is(
    make_runtime: Make, settings: DockerSettings, tmp_path: Path
) -> None:
    engine = Stubborn()
    runtime = make_runtime(users_in(tmp_path), engine=engine, start_timeout_s=1.0)
    with pytest.raises(StartFailed):
        await runtime.start(TOOL, versatile(volumes={}, environment={}, command=["sleep", "60"]), silent)
    user = await user_in_use(engine, settings)
    lock = (tmp_path / "users" / user.partition(":")[0]).open()
    with lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        engine.refuses = False
        assert len(await runtime.sweep()) == 1
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    await runtime.close()
    engine.close()


def test_a_tool_has_its_user_until_it_is_released_and_its_volumes_follow(settings: DockerSettings, engine: Engine, tmp_path: Path) -> None:
    parts = container_parts(settings, engine, users=users_in(tmp_path, UIDS[:2]))
    file = settings.state / "volumes" / place_of_volumes("a") / "data/file"
    file.parent.mkdir(parents=True)
    file.touch()
    one, same, other = user_of(parts, "a"), user_of(parts, "a"), user_of(parts, "b")
    assert one.identity == same.identity != other.identity
    assert owner_of(file) == one.identity
    with pytest.raises(StartFailed) as failure:
        user_of(parts, "c")
    assert failure.value.error_type is ErrorType.UNAVAILABLE
    one.release()
    same.release()
    assert user_of(parts, "c").identity == one.identity
    assert owner_of(file) == PAYLOAD
    other.release()
    back = user_of(parts, "a")
    assert (back.identity, owner_of(file)) == (other.identity, other.identity)
