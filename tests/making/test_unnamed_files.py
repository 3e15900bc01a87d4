"""A candidate with a file as a default is not tried."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from engine.making.candidates import Candidates
from engine.making.evidence import Accounts
from engine.making.maker import Maker, MakerParts
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.tasks import TaskTable
from tests.runtimes.conftest import silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import BuildTool
from toolagent_service.contracts.making_steps import VerifyStep

SCHEMA: JsonSchema = {"type": "object", "properties": {"f": {"type": "string", "format": "file-path", "default": "customers.csv"}}}
ENTRY = ToolEntry(manifest=ToolManifest(tool_id="t", name="T", input_schema=SCHEMA), sources=(LocalSource(host_dir="t"),))


class Kept:
    """The Candidates that the gate reads."""

    async def load(self, file_id: str) -> Candidate:  # noqa: ARG002 - the protocol's
        return Candidate(entries=(ENTRY,))


@dataclass
class Parts:
    """The parts of MakerParts that are used before a trial."""

    candidates: Candidates
    accounts: Accounts


async def test_a_tool_that_would_be_handed_a_file_that_nobody_named_is_not_tried(database: Database, tmp_path: Path) -> None:
    """There is no runtime that could run it."""
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 10_000_000)
    accounts = Accounts(TaskTable(database), ModelTurnTable(database, MessageTable(database, files)))
    parts = cast("MakerParts", Parts(cast("Candidates", Kept()), accounts))
    step = VerifyStep(task_id="create_00000001", spec=BuildTool(tool_name="t", description="It reads."), candidate="file_0")
    assessed = await Maker(parts).verify(step, silent)
    assert "$.f of 't'" in (assessed.for_the_maker or "")
    assert [(check.check, check.passed) for check in assessed.evidence.checks] == [("takes named files", False)]
