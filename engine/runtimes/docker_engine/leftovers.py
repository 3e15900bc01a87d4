"""Containers and images of this state directory, and those whose makers are gone."""

import contextlib

from engine.runtimes.docker_engine.engine import Api, Document, Engine, EngineRefused
from engine.runtimes.docker_engine.labels import OWN_IMAGES, PLACE, STATE, Kind, Marks
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.docker_engine.settings import DockerSettings


async def own_containers(engine: Engine, settings: DockerSettings, *kinds: Kind) -> list[tuple[str, Marks, bool]]:
    """The containers of this state directory: ids, marks, and whether they run. Raises EngineFailure, OSError."""
    filters = {"label": f"{STATE}={settings.owner.state}"}
    listed = await engine.ask(lambda api: api.containers(all=True, filters=filters))
    return settings.seals.ours(listed, *kinds)


async def own_images(engine: Engine, settings: DockerSettings, **more: bool) -> list[Document]:
    """The images of this state directory that match the filters `more`. Raises EngineFailure, OSError."""
    filters = {"label": f"{STATE}={settings.owner.state}", **more}
    return [one for one in await engine.ask(lambda api: api.images(filters=filters)) if settings.seals.image(one.get("Labels"))]


async def names_of(engine: Engine, settings: DockerSettings) -> tuple[str, ...]:
    """The names of containers that outlive a worker. Raises EngineFailure, OSError."""
    return tuple(marks.name for _, marks, _ in await own_containers(engine, settings, Kind.SERVING, Kind.BUILD))


async def sweep_gone(engine: Engine, seals: Seals) -> tuple[str, ...]:
    """Remove unfinished builds of dead workers, and everything of state directories that are gone. Raises EngineFailure.

    Leftovers of other users of this machine stay: their seals cannot be checked without their key.
    """
    return await engine.ask(lambda api: tuple(sorted((*_containers(engine, api, seals), *_images(engine, api, seals)))))


def _containers(engine: Engine, api: Api, seals: Seals) -> list[str]:
    everything = api.containers(all=True, filters={})
    gone = [one for one in everything if _is_left(one, seals)]
    networks = {f"container:{one['Id']}" for one in gone}
    gone += [one for one in everything if one.get("HostConfig", {}).get("NetworkMode") in networks]
    for one in gone:
        with contextlib.suppress(EngineRefused):  # it is gone, or another worker is just removing it
            engine.in_this_thread(lambda api, one=one: api.remove_container(one["Id"], v=True, force=True))
    return [str(name).removeprefix("/") for one in gone for name in one.get("Names") or ()]


def _is_left(one: Document, seals: Seals) -> bool:
    ours = seals.container(one.get("Labels"))
    if ours is None:
        return False
    origin, marks = ours
    return marks.is_orphan and (origin.is_gone or (marks.kind is Kind.GATE and origin.is_here))


def _images(engine: Engine, api: Api, seals: Seals) -> list[str]:
    removed: list[str] = []
    for image in api.images(filters={"label": PLACE}):
        origin = seals.image(image.get("Labels"))
        if origin is None or not origin.is_gone:
            continue
        # A name that another user gave the image stays.
        tags = [tag for tag in image.get("RepoTags") or () if not tag.startswith("<none>")]
        for name in [tag for tag in tags if tag.startswith(OWN_IMAGES)] if tags else [str(image["Id"])]:
            with contextlib.suppress(EngineRefused):  # a container uses it
                engine.in_this_thread(lambda api, name=name: api.remove_image(name))
                removed.append(name)
    return removed
