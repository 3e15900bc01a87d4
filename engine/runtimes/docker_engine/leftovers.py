"""What is there of containers and images whose makers are gone."""

import contextlib

from engine.runtimes.docker_engine.engine import Api, Document, Engine, EngineRefused
from engine.runtimes.docker_engine.labels import OWN_IMAGES, PLACE, STATE, Kind
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.docker_engine.settings import DockerSettings


async def names_of(engine: Engine, settings: DockerSettings) -> tuple[str, ...]:
    """The containers of a state directory that outlive a worker. Raises EngineFailure, OSError."""
    state, seals = settings.owner.state, settings.seals
    containers = await engine.ask(lambda api: api.containers(all=True, filters={"label": f"{STATE}={state}"}))
    return tuple(marks.name for _, marks, _ in seals.ours(containers, Kind.SERVING, Kind.BUILD))


async def sweep_gone(engine: Engine, seals: Seals) -> tuple[str, ...]:
    """Remove what dead workers were building, and all that belongs to state directories that are no more. Raises EngineFailure.

    Of what other users of this machine left nothing can be told to be theirs: it is left to them.
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
        # A name that another user gave it is kept.
        tags = [tag for tag in image.get("RepoTags") or () if not tag.startswith("<none>")]
        for name in [tag for tag in tags if tag.startswith(OWN_IMAGES)] if tags else [str(image["Id"])]:
            with contextlib.suppress(EngineRefused):  # a container uses it
                engine.in_this_thread(lambda api, name=name: api.remove_image(name))
                removed.append(name)
    return removed
