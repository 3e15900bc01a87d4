"""What a service with the second source type shows of its tool; run by test_second_source.py, with the two lines."""

import shutil
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.making.gate.derivation import Derivation
from engine.making.gate.judging import judge
from engine.making.gate.subject import Subject
from engine.making.gate.trial import on_trial
from engine.registry.archives import ProjectArchives
from engine.registry.export import CatalogExport
from engine.registry.registry import ToolRegistry
from engine.registry.stored_archives import StoredArchives
from engine.runtimes import make_runtimes
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.projects import Projects
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Supervisor
from engine.store.database import Database
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from tests.api.conftest import House, house, server_patience_s
from tests.registry.importing import files_of, importer_of, write_catalog
from tests.runtimes.conformance import Params, check_runtime
from tests.runtimes.conformance import Subject as Conforming
from tests.runtimes.conftest import Routes, request_of, silent
from tests.runtimes.second_source.source import TemplateSource
from toolagent.cli.permissions import granted
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.http import ToolDetail
from toolagent.contracts.routes import RunState
from toolagent.contracts.task_specs import Example
from toolagent_service.calls.dispatch import placement_of
from toolagent_service.making.mendable import unmendable

__all__ = ["house", "server_patience_s"]

CATALOG: dict[str, dict[str, JsonValue]] = {
    "registry.json": {
        "tools": [
            {
                "tool_id": "greeting",
                "name": "Greeting",
                "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                "output_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
                "side_effect_scope": "none",
            }
        ]
    },
    "sources.json": {"sources": {"greeting": [{"type": "template", "host_dir": "greeting"}]}},
}
MOMO: Params = {"name": "Momo"}
KASSIOPEIA: Params = {"name": "Kassiopeia"}


def written(data: Path) -> Path:
    text = data / "greeting/text.txt"
    text.parent.mkdir(parents=True)
    text.write_text("Hello, $name.", "utf-8")
    return text


@pytest_asyncio.fixture
async def database(sqlite_url: str) -> AsyncGenerator[Database]:
    database = Database(sqlite_url)
    yield database
    await database.close()


@pytest_asyncio.fixture
async def entry(database: Database, tmp_path: Path) -> ToolEntry:
    """The entry as a catalog imports it. Its folder is gone since, so only the archive is left."""
    write_catalog(tmp_path / "data", CATALOG)
    text = written(tmp_path / "data")
    assert await importer_of(database, tmp_path).run(tmp_path / "data", ()) == ()
    text.unlink()
    (entry,) = await ToolTable(database).list_active_versions()
    return entry


@pytest.fixture
def packed_parts(parts: RuntimeParts, database: Database, tmp_path: Path) -> RuntimeParts:
    files = files_of(database, tmp_path)
    return replace(parts, projects=Projects(tmp_path / "projects", StoredArchives(files, ProjectArchives(files))))


async def test_it_is_called_and_stopped(packed_parts: RuntimeParts, entry: ToolEntry, routes: Routes) -> None:
    runtimes = make_runtimes(packed_parts)
    supervisor = Supervisor(runtimes, routes, "here")
    reply = await supervisor.call(Dispatch(entry, request_of(name="Momo")))
    assert reply.output == {"text": "Hello, Momo."}
    up = await supervisor.start(entry, silent)
    assert (up.state, up.endpoint) == (RunState.RUNNING, f"template:{entry.sources[0].archive}")
    stopped = await supervisor.stop("greeting")
    assert (stopped.state, routes.states) == (RunState.STOPPED, [RunState.RUNNING, RunState.STOPPED])
    assert [vars(runtimes["template"])["_read"], await supervisor.close()] == [{}, None]


async def test_it_conforms(packed_parts: RuntimeParts, entry: ToolEntry, tmp_path: Path) -> None:
    runtime, (source, *_) = make_runtimes(packed_parts)["template"], entry.sources
    answers: tuple[Params, Callable[[JsonValue], bool]] = (MOMO, lambda output: output == {"text": "Hello, Momo."})
    absent = TemplateSource(host_dir="nowhere")
    applied = await check_runtime(Conforming(runtime, entry.manifest, source, absent, tmp_path, answers, refuses={}))  # pyright: ignore[reportArgumentType] - the union has it beside the two lines
    assert applied["it answers"]
    assert applied["bad parameters are a validation error"]


async def test_it_is_listed(house: House, entry: ToolEntry) -> None:
    listed = (await house.http.get("/tools")).json()["tools"]
    assert [(tool["tool_id"], tool["backend_runtime"], tool["state"]) for tool in listed] == [("greeting", "local", "stopped")]
    (found,) = (await house.http.post("/search_tools", json={"keyword": "greet"})).json()["tools"]
    assert (found["tool_id"], found["endpoint_path"], found["host_dir"]) == ("greeting", None, None)
    detail = ToolDetail.model_validate_json((await house.http.get("/tools/greeting")).content)
    assert detail.sources == entry.sources
    assert dict(granted(detail))["hosts"] == "none"


async def test_it_passes_the_gate(packed_parts: RuntimeParts, entry: ToolEntry, tmp_path: Path) -> None:
    examples = [Example(input=params, expected_output={"text": f"Hello, {params['name']}."}) for params in (MOMO, KASSIOPEIA)]
    async with on_trial((entry,), packed_parts, task_id="create_00000000") as trial:
        subject = Subject((entry,), trial, Derivation(tmp_path / "derived", 3), (examples[0],), (examples[1],), written_by_us=True)
        judgement = await judge(subject)
    assert (judgement.behaviour, judgement.for_the_maker) == ("verified", "")
    assert {check.check for check in judgement.checks if check.applies} >= {"starts", "given examples", "withheld examples"}


async def test_it_is_exported_and_read_back(entry: ToolEntry, database: Database, empty_database: Path, tmp_path: Path) -> None:
    later = entry.manifest.model_copy(update={"version": "1.0.1"})
    await ToolRegistry(ToolTable(database), RouteTable(database)).register(later, entry.sources)
    documents = await CatalogExport(database).documents()
    assert documents["sources.json"] == {
        "sources": {"greeting": [{"type": "template", "host_dir": "greeting", "content": entry.sources[0].archive}]}
    }
    write_catalog(tmp_path / "exported", documents)
    written(tmp_path / "exported")
    shutil.copyfile(empty_database, tmp_path / "other.db")
    other = Database(f"sqlite+aiosqlite:///{tmp_path / 'other.db'}")
    faults = await importer_of(other, tmp_path / "other").run(tmp_path / "exported", ())
    found = await ToolTable(other).list_active_versions()
    await other.close()
    assert faults == ()
    assert [(one.manifest.version, one.sources) for one in found] == [("1.0.1", entry.sources)]


def test_what_it_does_not_say_of_itself_is_taken_to_be_absent(entry: ToolEntry) -> None:
    assert placement_of(entry, ("default",), "here").queue == "here/default"
    assert "is of a type that is not repaired here" in unmendable(entry)
