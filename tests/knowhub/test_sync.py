"""Synchronisations with KnowHub over real HTTP: both sides afterwards, concurrent changes, and failures of KnowHub."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue

from engine.knowhub.client import KnowHubClient, KnowHubError
from engine.knowhub.sync import CatalogWatch, KnowHubSyncing
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.knowhub import SyncRequest, SyncStatus
from toolagent.contracts.manifest import ToolManifest
from toolagent.testing.servers.knowhub_server import KnowHubFault, KnowHubServer

STITCHER, COMFY = "tools/image/image_stitcher", "tools/image_gen/comfyui"
GO = SyncRequest()


@asynccontextmanager
async def syncing(
    database: Database, url: str, key: str | None = None, timeout_s: float = 10, longest_s: float = 60
) -> AsyncGenerator[KnowHubSyncing]:
    tools = ToolTable(database)
    for tool_id in ("image_stitcher", "run_comfyui"):
        if await tools.get(tool_id) is None:
            await tools.put(ToolEntry(manifest=ToolManifest(tool_id=tool_id, name=tool_id)), "registered")
    client = KnowHubClient(url, lambda: key, timeout_s=timeout_s)
    try:
        yield KnowHubSyncing(tools, GroupTable(database), client, longest_s=longest_s)
    finally:
        await client.aclose()


def items(server: KnowHubServer, resource_id: str) -> tuple[object, object]:
    metadata = server.resource(resource_id)["metadata"]
    assert isinstance(metadata, dict)
    return metadata["toolhub_items"], metadata["status"]


async def test_a_dry_run_says_what_a_real_one_does_and_a_second_one_changes_nothing(database: Database) -> None:
    with KnowHubServer(key="k") as server:
        async with syncing(database, server.url, "k") as both:
            planned = await both.run(SyncRequest(dry_run=True))
            assert (planned.status, server.patches) == (SyncStatus.PLANNED, ())
            done, again = await both.run(GO), await both.run(GO)
        assert (done.status, done.plan) == (SyncStatus.DONE, planned.plan)
        assert (again.plan.ours, again.plan.theirs, len(again.plan.links)) == ((), (), 2)
        assert sorted(server.patches) == [STITCHER, COMFY]
        assert items(server, STITCHER) == ([{"image_stitcher": "image_stitcher"}], "已接入")
    entry = await ToolTable(database).get("run_comfyui")
    assert entry is not None
    assert entry.manifest.tool_slug_ids == ("comfyui",)


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("fault", [KnowHubFault(kind="meddle", method="PATCH"), KnowHubFault(kind="409", method="PATCH", times=2)])
async def test_what_changes_meanwhile_is_merged(database: Database, fault: KnowHubFault, *, tagged: bool) -> None:
    if fault.kind == "meddle" and not tagged:
        # Without an ETag a change in the same instant is seen by nobody; one before the reading is.
        fault = fault.model_copy(update={"method": "GET", "times": 3})
    with KnowHubServer(tagged=tagged, faults=[fault]) as server:
        async with syncing(database, server.url) as both:
            assert (await both.run(GO)).status is SyncStatus.DONE
        named = [name for resource in (STITCHER, COMFY) for item in server.resource(resource)["metadata"]["toolhub_items"] for name in item]  # pyright: ignore
    assert {"image_stitcher", "run_comfyui"} <= {*named}
    assert ("meanwhile" in named) is (fault.kind == "meddle")


@pytest.mark.parametrize(("kind", "times", "said"), [("404", 1, "any more"), ("409", 6, "meanwhile"), ("500", 1, "answers 500")])
async def test_a_resource_that_cannot_be_changed_keeps_no_other_from_it(database: Database, kind: str, times: int, said: str) -> None:
    fault = KnowHubFault.model_validate({"kind": kind, "method": "PATCH", "times": times})
    with KnowHubServer(faults=[fault]) as server:
        async with syncing(database, server.url) as both:
            done, later = await both.run(GO), await both.run(GO)
        assert done.status is SyncStatus.PARTLY
        assert all(said in failure.reason for failure in done.failed)
        assert f"{len(server.patches) - len(later.plan.theirs)} resources there" in done.said
        assert (later.status, len(later.plan.theirs)) == (SyncStatus.DONE, len(done.failed))


async def test_one_that_cannot_be_merged_or_read_is_told_of(database: Database) -> None:
    odd: list[dict[str, JsonValue]] = [
        {"id": "tools/a/image_stitcher", "metadata": {"toolhub_items": "old"}},
        {"id": "tools/a/../image_stitcher", "metadata": {}},  # its own answer is that of another
        {"id": "tools/image_stitcher", "metadata": {"status": "测试中", "toolhub_items": [{"image_stitcher": ""}]}},
    ]
    with KnowHubServer(resources=odd) as server:
        async with syncing(database, server.url) as both:
            done = await both.run(GO)
        assert (done.status, server.patches) == (SyncStatus.PARTLY, ())
    assert [said in failure.reason for said, failure in zip(("no list", "answers with no resource"), done.failed, strict=True)] == [
        True,
        True,
    ]


async def test_entries_without_an_id_are_told_of(database: Database) -> None:
    listed: list[dict[str, JsonValue]] = [
        {"title": "Cutter", "metadata": {"tool_slug": "cut"}},
        {"id": 7, "metadata": {"tool_slug": "image_stitcher"}},
        {"id": STITCHER, "metadata": {"tool_slug": "image_stitcher"}},
        {"metadata": 1},
        {"id": "notes/about"},
    ]
    with KnowHubServer(resources=listed) as server:
        async with syncing(database, server.url) as both:
            planned, done = await both.run(SyncRequest(dry_run=True)), await both.run(GO)
        assert (done.status, server.patches) == (SyncStatus.DONE, (STITCHER,))
    for told in (planned, done):
        assert [one.entry for one in told.plan.left_out] == ["Cutter", "image_stitcher", "entry 4"]
        assert (told.plan.left_out_total, "3 entries without an id" in told.said) == (3, True)


async def test_what_there_is_no_time_for_is_told_of(database: Database) -> None:
    with KnowHubServer(faults=[KnowHubFault(kind="slow", method="PATCH")]) as server:
        async with syncing(database, server.url, longest_s=3) as both:
            done, later = await both.run(GO), await both.run(GO)
        assert (done.status, [failure.resource_id in server.patches for failure in done.failed]) == (SyncStatus.PARTLY, [True])
    assert "no time left" in done.failed[0].reason
    assert (later.status, len(later.plan.theirs)) == (SyncStatus.DONE, 1)


@pytest.mark.parametrize(
    ("kind", "key", "is_passing", "said"),
    [
        ("404", "k", False, "TOOL_AGENT_KNOWHUB_URL"),
        ("500", "k", True, "answers 500"),
        ("slow", "k", True, "did not answer within"),
        ("garbage", "k", False, "no JSON"),
        ("409", "other", False, "TOOL_AGENT_SECRET_KNOWHUB"),
    ],
)
async def test_a_knowhub_that_cannot_be_read_changes_nothing(
    database: Database, kind: str, key: str, said: str, *, is_passing: bool
) -> None:
    with KnowHubServer(key="k", faults=[KnowHubFault.model_validate({"kind": kind})]) as server:
        async with syncing(database, server.url, key, timeout_s=0.5) as both:
            with pytest.raises(KnowHubError, match=said) as refused:
                await both.run(GO)
        assert (refused.value.is_passing, server.patches) == (is_passing, ())


async def test_one_that_is_away_or_off_says_so(database: Database) -> None:
    async with syncing(database, "http://127.0.0.1:1") as both:
        with pytest.raises(KnowHubError, match="cannot be reached"):
            await both.run(GO)
    off = await KnowHubSyncing(ToolTable(database), GroupTable(database), None).run(GO)
    assert (off.status, "TOOL_AGENT_KNOWHUB_URL" in off.said) == (SyncStatus.OFF, True)


async def test_each_change_of_the_catalog_is_told_of_until_it_is_heard(database: Database) -> None:
    told, deaf = list[int](), [True]

    async def changed() -> None:
        told.append(1)
        if deaf:
            deaf.clear()
            raise ConnectionError

    watch = CatalogWatch(CatalogState(database), changed)
    with pytest.raises(ConnectionError):
        await watch.look()
    await watch.look()
    await watch.look()
    assert len(told) == 2
    async with syncing(database, "http://127.0.0.1:1"):
        await asyncio.gather(watch.look())
    assert len(told) == 3
