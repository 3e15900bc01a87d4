"""What is there of containers and images whose makers are gone."""

import contextlib

from engine.runtimes.docker.engine import Api, Document, Engine, EngineRefused
from engine.runtimes.docker.labels import PLACE, STATE, Kind, Marks, Origin

__all__ = ["names_of", "sweep_gone"]

_LASTING = (Kind.SERVING, Kind.BUILD)


async def names_of(engine: Engine, state: str) -> tuple[str, ...]:
    """The containers of a state directory that outlive a worker. Raises EngineFailure."""
    containers = await engine.ask(lambda api: api.containers(all=True, filters={"label": f"{STATE}={state}"}))
    read = [Marks.read(one.get("Labels") or {}) for one in containers]
    return tuple(marks.name for marks in read if marks is not None and marks.kind in _LASTING)


async def sweep_gone(engine: Engine) -> tuple[str, ...]:
    """Remove what dead workers were building, and all that belongs to state directories that are no more. Raises EngineFailure."""
    return await engine.ask(lambda api: tuple(sorted((*_containers(engine, api), *_images(engine, api)))))


def _containers(engine: Engine, api: Api) -> list[str]:
    everything = api.containers(all=True, filters={})
    gone = [one for one in everything if _is_left(one)]
    networks = {f"container:{one['Id']}" for one in gone}
    gone += [one for one in everything if one.get("HostConfig", {}).get("NetworkMode") in networks]
    for one in gone:
        with contextlib.suppress(EngineRefused):  # it is gone, or another worker is just removing it
            engine.in_this_thread(lambda api, one=one: api.remove_container(one["Id"], v=True, force=True))
    return [str(name).removeprefix("/") for one in gone for name in one.get("Names") or ()]


def _is_left(one: Document) -> bool:
    labels: dict[str, str] = one.get("Labels") or {}
    origin, marks = Origin.read(labels), Marks.read(labels)
    if origin is None or marks is None or not marks.is_orphan:
        return False
    return origin.is_gone or (marks.kind is Kind.GATE and origin.is_here)


def _images(engine: Engine, api: Api) -> list[str]:
    removed: list[str] = []
    for image in api.images(filters={"label": PLACE}):
        origin = Origin.read(image.get("Labels") or {})
        if origin is None or not origin.is_gone:
            continue
        names = [tag for tag in image.get("RepoTags") or () if not tag.startswith("<none>")] or [str(image["Id"])]
        for name in names:
            with contextlib.suppress(EngineRefused):  # somebody made a container of it
                engine.in_this_thread(lambda api, name=name: api.remove_image(name))
                removed.append(name)
    return removed
