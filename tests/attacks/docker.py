"""Docker tools whose source or Dockerfile attacks a foreign container, another tool, or this machine."""

import functools
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pydantic import JsonValue

from engine.runtimes.docker_engine.engine import Api, Document, Engine
from engine.runtimes.docker_engine.labels import STATE, TOOL
from engine.runtimes.process.ownership import Owner
from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import docker_tools
from tests.docker.engines import IMAGE, ready_engine
from tests.system.waiting import wait_until

__all__ = ["KIND"]

T = TypeVar("T")

_KEY = "sk-live-0123456789abcdef"
_REFUSED = {403, 422, 502}

Sources = Mapping[str, Mapping[str, JsonValue]]


@functools.cache
def _ready() -> None:
    ready_engine()


def _on_engine(what: Callable[[Api], T]) -> T:
    _ready()
    engine = Engine()
    try:
        return engine.in_this_thread(what)
    finally:
        engine.close()


@contextmanager
def _tools(target: Target, sources: Sources, dockerfile: str = "") -> Generator[None]:
    """Register these tools; they and their containers are removed after the block."""
    _ready()
    with docker_tools(target.data, sources, dockerfile):
        try:
            for tool_id in sources:
                wait_until(lambda tool_id=tool_id: target.ask("GET", f"/tools/{tool_id}").is_success, f"{tool_id} is known")
            yield
        finally:
            for tool_id in sources:
                target.ask("DELETE", f"/tools/{tool_id}")
    for tool_id in sources:
        wait_until(lambda tool_id=tool_id: target.ask("GET", f"/tools/{tool_id}").status_code == 404, f"{tool_id} is forgotten")


def _new() -> str:
    """A removed tool is not recreated from the same file."""
    return f"attack:docker-{secrets.token_hex(4)}"


def _refused(target: Target, source: Mapping[str, JsonValue], dockerfile: str = "") -> str:
    """A call never runs such a tool, and its answer says why."""
    tool_id = _new()
    with _tools(target, {tool_id: source}, dockerfile):
        answer = target.call(tool_id)
        expect(answer.json().get("error"), f"it ran: {answer.text[:200]}")
        return answered(answer, _REFUSED)


def _container(target: Target, tool_id: str) -> Document:
    """The tool's container, as the engine shows it to all users."""
    labels = [f"{STATE}={Owner.state_of(target.service.state)}", f"{TOOL}={tool_id}"]
    (one,) = _on_engine(lambda api: api.containers(all=True, filters={"label": labels}))
    return _on_engine(lambda api: api.inspect_container(one["Id"]))


def labels(target: Target) -> str:
    """Build steps whose labels claim to be a foreign container: that container stays."""
    name = f"attack-foreign-{secrets.token_hex(4)}"
    foreign = str(_on_engine(lambda api: api.create_container_from_config({"Image": IMAGE, "Cmd": ["true"]}, name))["Id"])
    ours = f"{STATE}={Owner.state_of(target.service.state)} org.tool-agent.name={name} org.tool-agent.kind=serving"
    try:
        told = [_refused(target, {}, f"{word} {ours}\nRUN sleep 15\n") for word in ("LABEL", "ONBUILD LABEL")]
        expect(_on_engine(lambda api: api.inspect_container(foreign))["Id"] == foreign, "the foreign container is gone")
    finally:
        _on_engine(lambda api: api.remove_container(foreign, v=True, force=True))
    return ", ".join(told)


def fetched(target: Target) -> str:
    """A line that continues only in the engine's reading, and would fetch from our own loopback."""
    before = sum(target.peer.asked.values())
    told = [_refused(target, {}, f"ADD main.py \\{space}\n{target.peer.url}/x /x\n") for space in ("\v", "\f", "\u2028")]
    expect(sum(target.peer.asked.values()) == before, "the engine asked this machine's own loopback")
    return ", ".join(told)


def copied(target: Target) -> str:
    """FROM another tool's image, by its id and by its quoted name."""
    told: list[str] = []
    victims = _new()
    with _tools(target, {victims: {}}):
        told.append(answered(target.call(victims), {200}))
        (victim,) = _on_engine(
            lambda api: api.images(filters={"label": [f"{STATE}={Owner.state_of(target.service.state)}", f"{TOOL}={victims}"]})
        )[:1]
    names = (str(victim["Id"]).removeprefix("sha256:"), str(victim["Id"]), 'tool"-"agent/tool/victim')
    return ", ".join([*told, *(_refused(target, {}, f"COPY --from={name} /app /stolen\n") for name in names)])


def volumes(target: Target) -> str:
    """Tools whose ids differ in one character."""
    sources: Sources = {tool_id: {"volumes": {"shared": "/shared"}} for tool_id in ("attack:a", "attack_a")}
    with _tools(target, sources):
        written, read = (
            target.call(tool_id, {"mode": mode, "paths": ["/shared/file"]})
            for tool_id, mode in zip(sources, ("write", "read"), strict=True)
        )
        told = [answered(answer, {200}) for answer in (written, read)]
        expect(written.json()["result"] == {"/shared/file": "done"}, f"it could not write: {written.text[:200]}")
        expect(read.json()["result"] == {"/shared/file": "FileNotFoundError"}, f"the other one saw it: {read.text[:200]}")
        return ", ".join(told)


def names(target: Target) -> str:
    """An invalid container name that would become a path of the engine's API."""
    for number, name in enumerate(("../images/x", "x/json?size=1", "..")):
        tool_id = f"attack:named-{number}"
        with docker_tools(target.data, {tool_id: {"container_id": name, "internal_port": 80}}):
            wait_until(
                lambda tool_id=tool_id: tool_id in str(target.ask("GET", "/tools").json()["catalog_faults"]), "it is a fault of the catalog"
            )
            answered(target.call(tool_id), {404, 501})
    wait_until(lambda: not target.ask("GET", "/tools").json()["catalog_faults"], "the catalog is well again")
    return "faults of the catalog, and no source"


def key(target: Target) -> str:
    """A key in the source: the tool gets it, the engine does not show it."""
    tool_id = _new()
    with _tools(target, {tool_id: {"environment": {"API_KEY": _KEY}}}):
        answer = target.call(tool_id, {"mode": "environment"})
        told = answered(answer, {200})
        expect(answer.json()["result"].get("API_KEY") == _KEY, f"the tool has {answer.json()['result'].get('API_KEY')}")
        expect(_KEY not in str(_container(target, tool_id)), "`docker inspect` shows the key")
        return told


def greed(target: Target) -> str:
    """More cores than the machine has, and a folder on the engine's disk."""
    tool_id = _new()
    with _tools(target, {tool_id: {"nano_cpus": 10**13}}, "VOLUME /left\n"):
        told = answered(target.call(tool_id, {"mode": "write", "paths": ["/left/file"]}), {200})
        mounts = {str(one["Destination"]): one["Type"] for one in _container(target, tool_id)["Mounts"]}
        expect(mounts.get("/left") == "tmpfs", f"VOLUME is {mounts.get('/left')}")
        return told


def places(target: Target) -> str:
    """Forbidden mount points in other spellings."""
    return ", ".join(_refused(target, {"volumes": {"x": place}}) for place in ("//proc/sys", "/./dev", "/x/../proc", "/"))


KIND = Kind(
    "docker",
    (
        Attack("labels", "a build's steps with our labels and the name of a foreign container", labels, is_load=True),
        Attack(
            "fetched",
            "ADD, a backslash and a space that only some strip, then an address of our loopback",
            fetched,
            is_load=True,
            in_ci=False,
        ),
        Attack("copied", "COPY --from the image of another tool, by id and in quotes", copied, is_load=True, in_ci=False),
        Attack("volumes", "volumes of the tools `attack:a` and `attack_a`", volumes, is_load=True, in_ci=False),
        Attack("names", "a container_id that is a path of the engine's interface", names, in_ci=False),
        Attack("key", "a literal key in `environment`, looked for in docker inspect", key, is_load=True),
        Attack("greed", "VOLUME, and ten thousand cores", greed, is_load=True, in_ci=False),
        Attack("places", "volumes at //proc/sys and the like", places, is_load=True, in_ci=False),
    ),
)
