"""The table of containers."""

import json

from engine.store.containers import ContainerTable
from engine.store.database import Database
from toolagent_service.contracts.containers import ContainerInfo, ContainerStatus


def container(name: str, tool_id: str = "boxed", status: ContainerStatus = ContainerStatus.RUNNING) -> ContainerInfo:
    return ContainerInfo(container_id=name, tool_id=tool_id, image="agent-sandbox:latest", status=status)


async def test_of_those_that_are_destroyed_the_last_of_each_tool_and_those_of_the_file_stay(database: Database) -> None:
    gone = ContainerStatus.DESTROYED
    table, filed = ContainerTable(database), container("filed", status=gone)
    others = (container("other", "other", gone), container("up"))
    await table.bring_in([(filed, json.dumps(filed.model_dump(mode="json")))], ())
    for one in (*others, container("first"), container("first", status=gone), container("second", status=gone)):
        await table.note(one)
    assert await table.list_all() == (filed, others[0], container("second", status=gone), others[1])
