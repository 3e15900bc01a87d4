"""The stored properties of a build container: the next worker finds them, and other users of the engine do not."""

import json

from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.docker.building.wishes import Wishes
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from tests.docker.conftest import containers_of, silent
from tests.parts import container_parts

SECRET = "hunter2-hunter2"  # noqa: S105 - it is nobody's
WISHES = Wishes("flask_api", environment={"TOKEN": SECRET}, mem_limit="128m", volumes={"data": "/data"})


async def test_secrets_are_in_no_label_and_the_next_worker_knows_them(engine: Engine, settings: DockerSettings) -> None:
    parts = container_parts(settings, engine)
    before = BuildContainers(parts)
    made = await before.create(WISHES, silent)
    (one,) = await containers_of(engine, settings)
    assert SECRET not in json.dumps(one["Labels"])
    (kept,) = (settings.state / "containers").iterdir()
    assert (SECRET in kept.read_text(), oct(kept.stat().st_mode)) == (True, "0o100600")
    await before.close()

    (settings.state / "containers" / "of-one-that-is-gone.json").write_text("{}")
    after = BuildContainers(parts)
    (found,) = await after.find()
    assert found.model_copy(update={"created_at": made.created_at}) == made
    assert [file.name for file in (settings.state / "containers").iterdir()] == [kept.name]
    again = await after.rebuild(made.container_id, (8000,))
    assert (await after.run(again.container_id, ["sh", "-c", "echo $TOKEN"], 20)).stdout == f"{SECRET}\n"
    await after.destroy(again.container_id)
    assert list((settings.state / "containers").iterdir()) == []
    await after.close()


async def test_wishes_that_somebody_changed_are_not_believed(engine: Engine, settings: DockerSettings) -> None:
    parts = container_parts(settings, engine)
    before = BuildContainers(parts)
    await before.create(WISHES, silent)
    (kept,) = (settings.state / "containers").iterdir()
    kept.write_text(kept.read_text().replace("flask_api", "others"))
    await before.close()
    after = BuildContainers(parts)
    (found,) = await after.find()
    assert (found.tool_id, dict(found.volumes)) == ("flask_api", {})
    await after.destroy(found.container_id)
    await after.close()
