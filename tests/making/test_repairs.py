"""Which candidate takes over from a version, under which version of its own, and what of it counts."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from engine.making.repairs import NotASuccessor, Repairs, successor
from engine.registry.registry import ToolRegistry
from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.manifest import NetworkAccess, PermissionClass, SecurityContext, SideEffectScope, ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource, RemoteSource
from toolagent.validation.versions import next_patch

OLD, NEW = f"file_{'0' * 32}", f"file_{'1' * 32}"
TASK, OTHER = "repair_00000001", "repair_00000002"
MANIFEST = ToolManifest(
    tool_id="reckoner",
    name="Reckoner",
    tags=("sums",),
    input_schema={"type": "object"},
    output_schema={"type": "object"},
    side_effect_scope=SideEffectScope.NONE,
    permission_class=PermissionClass.READ,
    requires_confirmation=True,
    concurrency=2,
    security_context=SecurityContext(network_access=NetworkAccess(allow_hosts=("a.example.test",))),
)
PRESENT = ToolEntry(
    manifest=MANIFEST,
    sources=(
        LocalSource(host_dir="reckoner", content=OLD, health_path="/ready", query_parameters=("n",)),
        RemoteSource(remote_url="https://spare.example.test"),
    ),
)


def candidate(*hosts: str, tool_id: str = "reckoner", source: LocalSource | DockerSource | None = None) -> Candidate:
    """As `register_tool` puts one down that says no more than it has to."""
    context = SecurityContext(network_access=NetworkAccess(allow_hosts=hosts))
    manifest = ToolManifest(tool_id=tool_id, name="Mended", description="It is mended.", security_context=context)
    source = source or LocalSource(host_dir="tools/made/reckoner", content=NEW, endpoint_path="/run")
    return Candidate(entries=(ToolEntry(manifest=manifest, sources=(source,)),), written_by_us=True)


def evidence(task_id: str) -> Evidence:
    return Evidence(task_id=task_id, at=datetime(2026, 11, 21, tzinfo=UTC))


@pytest_asyncio.fixture
async def repairs(database: Database) -> AsyncGenerator[Repairs]:
    made = Repairs(ToolRegistry(ToolTable(database), RouteTable(database)), CallTable(database), EvidenceTable(database))
    await made.registry.register(MANIFEST, PRESENT.sources)
    yield made


async def active(repairs: Repairs) -> tuple[str, list[str]]:
    found = await repairs.registry.versions("reckoner")
    assert found is not None
    return found.active_version, [one.version for one in found.versions]


def test_files_and_schemas_are_the_candidates_and_all_else_stays() -> None:
    made = successor(PRESENT, candidate(), "1.0.1")
    assert made.manifest == MANIFEST.model_copy(update={"version": "1.0.1", "description": "It is mended."})
    assert made.sources == (
        LocalSource(host_dir="tools/made/reckoner", content=NEW, endpoint_path="/run", health_path="/ready", query_parameters=("n",)),
        PRESENT.sources[1],
    )


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (candidate("a.example.test", "b.example.test"), "b.example.test"),
        (candidate(tool_id="reckoner_other"), "nothing else"),
        (candidate(source=DockerSource(dockerfile="Dockerfile", content=NEW)), "Keep the runtime"),
    ],
)
def test_what_asks_for_more_or_is_something_else_is_refused(made: Candidate, why: str) -> None:
    with pytest.raises(NotASuccessor, match=why):
        successor(PRESENT, made, "1.0.1")


async def test_however_often_it_is_registered_it_is_one_version_and_the_old_one_stays(repairs: Repairs) -> None:
    for _ in range(2):
        registered = await repairs.register(TASK, "reckoner", "1.0.0", candidate(), evidence(TASK))
        assert registered.tool_ids == ("reckoner",)
    assert await active(repairs) == ("1.0.1", ["1.0.1", "1.0.0"])
    assert await repairs.registry.roll_back("reckoner") == "1.0.0"
    assert await repairs.registry.entry("reckoner") == PRESENT


async def test_it_is_above_all_versions_there_are(repairs: Repairs) -> None:
    await repairs.registry.register(MANIFEST.model_copy(update={"version": "1.4.2"}), PRESENT.sources)
    await repairs.registry.activate("reckoner", "1.0.0")
    await repairs.register(TASK, "reckoner", "1.0.0", candidate(), evidence(TASK))
    assert (await active(repairs))[0] == "1.4.3"


async def test_it_does_not_take_over_from_a_version_that_it_did_not_mend(repairs: Repairs) -> None:
    await repairs.register(OTHER, "reckoner", "1.0.0", candidate(), evidence(OTHER))
    refused = (await repairs.register(TASK, "reckoner", "1.0.0", candidate(), evidence(TASK))).refused
    assert "1.0.1" in refused
    assert await active(repairs) == ("1.0.1", ["1.0.1", "1.0.0"])
    await repairs.registry.unregister("reckoner")
    assert "removed" in (await repairs.register(TASK, "reckoner", "1.0.0", candidate(), evidence(TASK))).refused


async def test_of_two_that_would_have_the_same_version_one_gets_it(repairs: Repairs) -> None:
    claims = await asyncio.gather(*(repairs.evidence.claim("reckoner", "1.0.1", evidence(task)) for task in (TASK, OTHER)))
    assert sorted(claims) == [False, True]
    owner = await repairs.evidence.get("reckoner", "1.0.1")
    assert owner is not None
    assert await repairs.evidence.claim("reckoner", "1.0.1", owner)
    registered = await repairs.register("repair_00000003", "reckoner", "1.0.0", candidate(), evidence("repair_00000003"))
    assert registered.tool_ids == ("reckoner",)
    assert (await active(repairs))[0] == "1.0.2"


def test_the_next_patch_is_above_all_that_can_be_compared() -> None:
    assert next_patch(["1.0.0", "1.2.9", "1.10.0", "01.99.0"]) == "1.10.1"
    assert next_patch(["2.0.0-rc.1"]) == "2.0.0"
