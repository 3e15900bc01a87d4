"""Which versions an image on the engine belongs to: images of none are swept."""

from engine.store.database import Database
from engine.upkeep.removal.containers import ImageSources
from tests.parts import tool_registry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource

ALONE, SHARED = DockerSource(dockerfile="Dockerfile"), DockerSource(dockerfile="Other", process="group")


async def test_an_image_is_of_a_tool_or_of_all_that_share_a_process_in_any_version(database: Database) -> None:
    registry = tool_registry(database)
    for tool_id, version, source in (
        ("one", "1.0.0", SHARED),
        ("one", "1.1.0", ALONE),
        ("two", "1.0.0", SHARED.model_copy(update={"endpoint_path": "/two"})),
        ("group", "1.0.0", ALONE),
    ):
        await registry.register(ToolManifest(tool_id=tool_id, name=tool_id, version=version), (source,))

    async def sources_of(name: str) -> tuple[DockerSource, ...]:
        return await ImageSources(registry).named(name)

    # The first version of `one` is not the active one, and can be called.
    assert {source.endpoint_path for source in await sources_of("group") if source.process} == {SHARED.endpoint_path, "/two"}
    assert await sources_of("one") == (ALONE,)
    assert await sources_of("two") == ()
    await registry.destroy("two")
    await registry.destroy("group")
    assert await sources_of("group") == (SHARED,)
    asked = ImageSources(registry)
    assert await asked.named("one") == (ALONE,)
    await registry.destroy("one")
    assert await sources_of("group") == ()
    assert await asked.named("group") == (SHARED,), "of all images of a round the versions are read once"
