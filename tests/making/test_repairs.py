"""Which candidate succeeds a version, under which version, and which of its fields count."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.making.mending.repairs import Mended, NotASuccessor, Repairs, successor
from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.quarantine import QuarantineTable
from tests.parts import tool_registry
from tests.registry.importing import importer_of, write_catalog
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, Evidence
from toolagent.contracts.manifest import NetworkAccess, PermissionClass, SecurityContext, SideEffectScope, ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource, RemoteSource
from toolagent.validation.versions import next_patch
from toolagent_service.making.mendable import content_of

OLD, NEW, BY_HAND = (f"file_{digit * 32}" for digit in "012")
SECRET: JsonValue = {"type": "string", "writeOnly": True}
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
MENDED = Mended("reckoner", "1.0.0", OLD)
PRESENT = ToolEntry(
    manifest=MANIFEST,
    sources=(
        LocalSource(host_dir="reckoner", content=OLD, health_path="/ready", query_parameters=("n",)),
        RemoteSource(remote_url="https://spare.example.test"),
    ),
)


def candidate(*hosts: str, tool_id: str = "reckoner", source: LocalSource | DockerSource | None = None) -> Candidate:
    """A candidate as `register_tool` submits it, with the required fields only."""
    context = SecurityContext(network_access=NetworkAccess(allow_hosts=hosts))
    manifest = ToolManifest(tool_id=tool_id, name="Mended", description="It is mended.", security_context=context)
    source = source or LocalSource(host_dir="tools/made/reckoner", content=NEW, endpoint_path="/run")
    return Candidate(entries=(ToolEntry(manifest=manifest, sources=(source,)),), written_by_us=True)


def evidence(task_id: str) -> Evidence:
    return Evidence(task_id=task_id, at=datetime(2026, 11, 21, tzinfo=UTC))


@pytest_asyncio.fixture
async def repairs(database: Database) -> AsyncGenerator[Repairs]:
    made = Repairs(tool_registry(database), CallTable(database), EvidenceTable(database), QuarantineTable(database))
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
@pytest.mark.promise("no-more-rights")
def test_what_asks_for_more_or_is_something_else_is_refused(made: Candidate, why: str) -> None:
    with pytest.raises(NotASuccessor, match=why):
        successor(PRESENT, made, "1.0.1")


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"input_schema": {"properties": {"pin": {"type": "string"}}}}, "pin of input_schema"),
        ({"input_schema": {"properties": {"pin": SECRET, "f": {"format": "file-path"}}}}, "f of input_schema"),
        ({"output_schema": {"properties": {"key": {"type": "string"}}}}, "key of output_schema"),
    ],
)
@pytest.mark.promise("no-more-rights")
def test_schemas_that_show_or_take_more_than_before_are_refused(now: dict[str, JsonValue], why: str) -> None:
    before = MANIFEST.model_copy(update={"input_schema": {"properties": {"pin": SECRET}}, "output_schema": {"properties": {"key": SECRET}}})
    made = candidate()
    same = made.entries[0].manifest
    assert successor(PRESENT.model_copy(update={"manifest": before}), made, "1.0.1").manifest.input_schema == before.input_schema
    entry = made.entries[0].model_copy(update={"manifest": same.model_copy(update=now)})
    with pytest.raises(NotASuccessor, match=why):
        successor(PRESENT.model_copy(update={"manifest": before}), made.model_copy(update={"entries": (entry,)}), "1.0.1")


@pytest.mark.parametrize(("dry_run", "why"), [({"type": "string"}, "not of type"), (None, "no property 'dry_run'")])
def test_the_test_mode_stays_and_what_does_not_allow_it_is_refused(dry_run: JsonValue, why: str) -> None:
    properties: dict[str, JsonValue] = {"n": {"type": "integer"}, "dry_run": {"type": "boolean"}}
    before = MANIFEST.model_copy(update={"input_schema": {"properties": properties}, "test_mode": {"dry_run": True}})
    present, entry = PRESENT.model_copy(update={"manifest": before}), candidate().entries[0]

    def made(**said: object) -> Candidate:
        return Candidate(entries=(entry.model_copy(update={"manifest": entry.manifest.model_copy(update=said)}),))

    assert successor(present, made(), "1.0.1").manifest.test_mode == {"dry_run": True}
    assert successor(present, made(test_mode={"n": 1}), "1.0.1").manifest.test_mode == {"dry_run": True}
    now: dict[str, JsonValue] = {"n": {}, "dry_run": dry_run} if dry_run else {"n": {}}
    with pytest.raises(NotASuccessor, match=why):
        successor(present, made(input_schema={"properties": now}), "1.0.1")


async def test_however_often_it_is_registered_it_is_one_version_and_the_old_one_stays(repairs: Repairs) -> None:
    for _ in range(2):
        registered = await repairs.register(TASK, MENDED, candidate(), evidence(TASK))
        assert registered.tool_ids == ("reckoner",)
    assert await active(repairs) == ("1.0.1", ["1.0.1", "1.0.0"])
    assert await repairs.registry.roll_back("reckoner") == "1.0.0"
    assert await repairs.registry.entry("reckoner") == PRESENT


async def test_it_is_above_all_versions_there_are(repairs: Repairs) -> None:
    await repairs.registry.register(MANIFEST.model_copy(update={"version": "1.4.2"}), PRESENT.sources)
    await repairs.registry.activate("reckoner", "1.0.0")
    await repairs.register(TASK, MENDED, candidate(), evidence(TASK))
    assert (await active(repairs))[0] == "1.4.3"


async def test_it_does_not_take_over_from_a_version_that_it_did_not_mend(repairs: Repairs) -> None:
    await repairs.register(OTHER, MENDED, candidate(), evidence(OTHER))
    refused = (await repairs.register(TASK, MENDED, candidate(), evidence(TASK))).refused
    assert "1.0.1" in str(refused)
    assert await active(repairs) == ("1.0.1", ["1.0.1", "1.0.0"])
    await repairs.registry.destroy("reckoner")
    assert "removed" in str((await repairs.register(TASK, MENDED, candidate(), evidence(TASK))).refused)


async def test_it_does_not_take_over_from_a_version_that_was_left_in_a_rollback(repairs: Repairs) -> None:
    await repairs.register(OTHER, MENDED, candidate(), evidence(OTHER))
    assert await repairs.registry.roll_back("reckoner") == "1.0.0"
    assert "active version, 1.0.0" in str(
        (await repairs.register(TASK, Mended("reckoner", "1.0.1", NEW), candidate(), evidence(TASK))).refused
    )
    assert await active(repairs) == ("1.0.0", ["1.0.1", "1.0.0"])


async def test_it_does_not_take_over_from_files_that_were_changed_meanwhile(repairs: Repairs) -> None:
    by_hand = (LocalSource(host_dir="reckoner", content=BY_HAND),)
    await repairs.registry.register(MANIFEST, by_hand)
    assert "were changed" in str((await repairs.register(TASK, MENDED, candidate(), evidence(TASK))).refused)
    assert await repairs.registry.entry("reckoner", "1.0.0") == await repairs.registry.entry("reckoner")
    assert (await repairs.register(TASK, Mended("reckoner", "1.0.0", BY_HAND), candidate(), evidence(TASK))).tool_ids == ("reckoner",)


async def test_what_took_over_stays_whatever_becomes_of_the_folder_of_the_one_before(
    database: Database, repairs: Repairs, tmp_path: Path
) -> None:
    data, project = tmp_path / "data", tmp_path / "data" / "abacus"
    registry: dict[str, JsonValue] = {"version": "2.0", "tools": [{"tool_id": "abacus", "name": "Abacus"}]}
    source: JsonValue = {"type": "local", "host_dir": "abacus"}
    write_catalog(data, {"registry.json": registry, "sources.json": {"sources": {"abacus": [source]}}})
    project.mkdir()
    (project / "main.py").write_text("1 / 0")
    assert await importer_of(database, tmp_path).run(data, ()) == ()
    broken = await repairs.registry.entry("abacus")
    assert broken is not None
    mended = Mended("abacus", broken.manifest.version, content_of(broken))
    assert (await repairs.register(TASK, mended, candidate(tool_id="abacus"), evidence(TASK))).tool_ids == ("abacus",)
    took_over = await repairs.registry.entry("abacus")
    # As after a restart: another importer, which knows of no folder what it looked like.
    for text in ("1 / 0", "2 / 0"):
        (project / "main.py").write_text(text)
        assert await importer_of(database, tmp_path).run(data, ()) == ()
        assert await repairs.registry.entry("abacus") == took_over
    changed = await repairs.registry.entry("abacus", broken.manifest.version)
    assert changed is not None
    assert content_of(changed) not in {"", mended.content}


async def test_of_two_at_once_one_takes_over_and_the_other_leaves_nothing(repairs: Repairs) -> None:
    ends = await asyncio.gather(*(repairs.register(task, MENDED, candidate(), evidence(task)) for task in (TASK, OTHER)))
    assert sorted(bool(end.refused) for end in ends) == [False, True]
    assert await active(repairs) == ("1.0.1", ["1.0.1", "1.0.0"])
    assert set(await repairs.evidence.of_tool("reckoner")) == {"1.0.1"}


async def test_a_version_that_somebody_registered_meanwhile_is_left_alone(repairs: Repairs) -> None:
    entry = await repairs.successor(TASK, "reckoner", "1.0.0", candidate())
    await repairs.registry.register(MANIFEST.model_copy(update={"version": "1.0.1"}), PRESENT.sources)
    await repairs.registry.activate("reckoner", "1.0.0")
    assert await repairs.registry.register_made([(entry, evidence(TASK))], mends="1.0.0") == "reckoner"
    assert await repairs.evidence.of_tool("reckoner") == {}
    assert (await repairs.register(TASK, MENDED, candidate(), evidence(TASK))).tool_ids == ("reckoner",)
    assert (await active(repairs))[0] == "1.0.2"


def test_the_next_patch_is_above_all_that_can_be_compared() -> None:
    assert next_patch(["1.0.0", "1.2.9", "1.10.0", "01.99.0"]) == "1.10.1"
    assert next_patch(["2.0.0-rc.1"]) == "2.0.0"
