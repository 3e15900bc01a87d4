"""Which containers of a state directory there are, whoever started them."""

from engine.runtimes.docker.engine import Engine
from engine.runtimes.docker.labels import STATE, Kind, Marks

__all__ = ["names_of"]


async def names_of(engine: Engine, state: str) -> tuple[str, ...]:
    """Of those that outlive a worker. Raises EngineFailure."""
    containers = await engine.ask(lambda api: api.containers(all=True, filters={"label": f"{STATE}={state}"}))
    read = [Marks.read(one.get("Labels") or {}) for one in containers]
    return tuple(marks.name for marks in read if marks is not None and marks.kind is not Kind.BOX)
