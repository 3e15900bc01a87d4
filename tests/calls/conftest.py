"""Admission and settlement on a real database, with a few tools in it."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.calls.admission import Admissions
from engine.calls.cached_tools import CachedTools, CachedTroubles
from engine.calls.checks.asked import CallLimits
from engine.calls.effects.ended import Places, SettledCalls
from engine.calls.file_parameters import FileParameters
from engine.calls.lookup import ToolLookup
from engine.calls.settlement import Settlements
from engine.disk.leftovers import discard
from engine.disk.removal import NotRemoved
from engine.registry.registry import ToolRegistry
from engine.store.calls import CallTable
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.production_repairs import ProductionRepairs
from engine.store.quarantine import QuarantineTable
from tests.calls.parts import admissions_of, files_of
from tests.parts import tool_registry
from tests.validation.recursive import TWICE
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.manifest import SideEffectScope, ToolManifest, ToolStatus
from toolagent.contracts.sources import BuiltinSource, DockerSource, LocalSource, ToolSource
from toolagent_service.contracts.steps import Admission, AdmitRequest

STITCH = ToolManifest(
    tool_id="stitch",
    name="Stitch",
    timeout_s=10,
    input_schema={
        "type": "object",
        "properties": {
            "images": {"type": "array", "items": {"type": "string", "format": "file-path"}, "maxItems": 2},
            "spacing": {"type": "integer", "minimum": 0, "default": 4},
            "token": {"type": "string", "format": "password"},
        },
        "required": ["images"],
        "additionalProperties": False,
    },
    output_schema={"type": "object", "properties": {"image": {"type": "string", "format": "file-path"}}, "required": ["image"]},
)


@dataclass
class Desk:
    """The parts around a call, and the folder whose files it may name."""

    admissions: Admissions
    admissions_by: Callable[[ToolLookup], Admissions]
    settlements: Settlements
    calls: CallTable
    files: FileStore
    parameters: FileParameters
    root: Path
    admit: Callable[..., Awaitable[Admission]]
    registry: ToolRegistry
    repairs: ProductionRepairs
    quarantine: QuarantineTable


_HERE = LocalSource(host_dir="x")
_TOOLS: tuple[tuple[ToolManifest, tuple[ToolSource, ...]], ...] = (
    (STITCH, (_HERE,)),
    (ToolManifest(tool_id="pure", name="Pure", side_effect_scope=SideEffectScope.NONE, timeout_s=1), (BuiltinSource(handler="pure"),)),
    (ToolManifest(tool_id="asleep", name="Asleep", status=ToolStatus.STAGING), (_HERE,)),
    (ToolManifest(tool_id="taken_away", name="Taken away", status=ToolStatus.INACTIVE), (_HERE,)),
    (ToolManifest(tool_id="asks", name="Asks", requires_confirmation=True), (_HERE,)),
    (ToolManifest(tool_id="homeless", name="Homeless"), ()),
    (ToolManifest(tool_id="dear", name="Dear", input_schema=TWICE, output_schema=TWICE), (_HERE,)),
    (
        ToolManifest(tool_id="giving", name="Giving", output_schema={"properties": {"pin": {"type": "string", "format": "password"}}}),
        (_HERE,),
    ),
    (
        ToolManifest(
            tool_id="given",
            name="Given",
            input_schema={"properties": {"pin": {"writeOnly": True}}},
            output_schema={"properties": {"echo": {"type": "integer"}}},
        ),
        (_HERE,),
    ),
    (ToolManifest(tool_id="boxed", name="Boxed"), (DockerSource(image="x"),)),
)


@pytest.fixture(scope="session")
def stocked_database(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the tools in it; registering them takes longer than most of these tests."""
    path = tmp_path_factory.mktemp("stocked") / "stocked.db"
    shutil.copyfile(empty_database, path)

    async def stock() -> None:
        database = Database(f"sqlite+aiosqlite:///{path}")
        for manifest, sources in _TOOLS:
            await tool_registry(database).register(manifest, sources)
        await database.close()

    asyncio.run(stock())
    return path


@pytest.fixture
def sqlite_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A copy of the stocked database."""
    shutil.copyfile(
        request.getfixturevalue("stocked_database" if "desk" in request.fixturenames else "empty_database"), tmp_path / "test.db"
    )
    return f"sqlite+aiosqlite:///{tmp_path / 'test.db'}"


@pytest_asyncio.fixture
async def desk(database: Database, tmp_path: Path) -> Desk:
    registry = tool_registry(database)
    calls, files = CallTable(database), files_of(database, tmp_path)
    root = tmp_path / "files"
    root.mkdir()
    parameters = FileParameters(files, root)
    limits = CallLimits(("local", "builtin", "remote"), 2000, 60.0, 600.0, max_values=500)
    quarantine, repairs = QuarantineTable(database), ProductionRepairs(database)
    troubles = CachedTroubles(repairs, quarantine, CachedTools(registry, CatalogState(database)))
    places = Places(calls, SettledCalls(), note_crash=quarantine.note_crash)

    def admissions_by(lookup: ToolLookup) -> Admissions:
        return admissions_of(database, lookup, parameters, limits, places, troubles)

    admissions = admissions_by(registry)

    async def admit(
        tool_id: str, params: dict[str, JsonValue] | None = None, call_id: str = "call-12345678", **fields: JsonValue
    ) -> Admission:
        call = ToolCall.model_validate({"tool_id": tool_id, "params": params or {}, **fields})
        request = AdmitRequest(call=call, call_id=call_id, workflow_id="w", run_id="r")
        return (await admissions.admit(request)).admission

    return Desk(
        admissions, admissions_by, Settlements(registry, places), calls, files, parameters, root, admit, registry, repairs, quarantine
    )


@dataclass
class Removal:
    """The removal of the folders of calls."""

    begins: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def discard(self, folder: Path, patience_s: float) -> NotRemoved | None:
        self.begins.set()
        self.may_go_on.wait(10)
        return discard(folder, patience_s)


@pytest.fixture
def removal(monkeypatch: pytest.MonkeyPatch) -> Removal:
    """A removal that waits until the test releases it."""
    held = Removal()
    monkeypatch.setattr("engine.calls.file_parameters.discard", held.discard)
    return held
