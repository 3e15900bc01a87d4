"""Which versions of which tools an image on the engine is of: what none of them says any more is swept."""

from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource
from workers.containers import docker_sources

ALONE, SHARED = DockerSource(dockerfile="Dockerfile"), DockerSource(dockerfile="Other", process="group")


async def test_an_image_is_of_a_tool_or_of_all_that_share_a_process_in_any_version(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    registry = ToolRegistry(ToolTable(database), RouteTable(database))
    for tool_id, version, source in (
        ("one", "1.0.0", SHARED),
        ("one", "1.1.0", ALONE),
        ("two", "1.0.0", SHARED.model_copy(update={"endpoint_path": "/two"})),
        ("group", "1.0.0", ALONE),
    ):
        await registry.register(ToolManifest(tool_id=tool_id, name=tool_id, version=version), (source,))
    # The first version of `one` is not the active one, and can be called.
    assert {source.endpoint_path for source in await docker_sources("group", registry) if source.process} == {SHARED.endpoint_path, "/two"}
    assert await docker_sources("one", registry) == (ALONE,)
    assert await docker_sources("two", registry) == ()
    await registry.unregister("two")
    await registry.unregister("group")
    assert await docker_sources("group", registry) == (SHARED,)
    await registry.unregister("one")
    assert await docker_sources("group", registry) == ()
    await database.close()
