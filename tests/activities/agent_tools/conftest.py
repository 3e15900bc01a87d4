"""Uses of tools as the activity runs them: a real database, a real sandbox, this machine's own package index."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest_asyncio
from pydantic import JsonValue
from temporalio.testing import ActivityEnvironment

from activities.agents.coding import CodingRole
from activities.use_tool import UseTool
from engine.making.candidates import Candidates
from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.index_addresses import addresses_from
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.making.workbench.bench import Workbench, Workbenches
from engine.making.workbench.proposals import Proposals
from engine.runtimes.docker.building.containers import BuildContainers
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from engine.tasks.subjects import Subjects
from engine.tasks.transcript import Transcript
from tests.making.workbench.conftest import bench_parts
from tests.store.making import task
from toolagent_service.agents.model_notes import key_of_use
from toolagent_service.contracts.agent import ToolNote, ToolRun
from toolagent_service.contracts.dependency_policy import DependencyPolicy
from toolagent_service.contracts.model import Message, ToolOutcome, ToolUse

POPULAR = Path(__file__).parents[3] / "data" / "popular_packages.txt"
TASK = task(1).task_id
OWN = "word_counter"


@dataclass
class Agent:
    """Uses tools as a model does, each use in a message of its own."""

    role: CodingRole
    use_tool: UseTool
    benches: Workbenches
    messages: MessageTable
    outcomes: ToolOutcomeTable
    notes: TaskNoteTable
    candidates: Candidates
    taken: set[str] = field(default_factory=set[str])
    environment: ActivityEnvironment = field(default_factory=ActivityEnvironment)
    position: int = 0

    async def bench(self) -> Workbench:
        return await self.benches.of(TASK)

    async def ask(self, name: str, /, **given: JsonValue) -> ToolRun:
        """A recorded use that is to be run."""
        self.position += 1
        use = ToolUse(id="toolu_1", name=name, input=given)
        await self.messages.put(TASK, self.position, Message(role="assistant", content=(use,)))
        return ToolRun(conversation_id=TASK, position=self.position, tool_use_id=use.id, name=name, summary=name, remaining_s=120.0)

    async def do(self, run: ToolRun) -> ToolNote:
        return await self.environment.run(self.use_tool.use_tool, run)

    async def use(self, name: str, /, **given: JsonValue) -> ToolNote:
        return await self.do(await self.ask(name, **given))

    async def shown(self, position: int | None = None) -> ToolOutcome:
        """The text that the model gets about the last use."""
        key = key_of_use(position or self.position, "toolu_1")
        return (await self.outcomes.get(TASK, (key,)))[key]

    async def told(self, name: str, /, **given: JsonValue) -> str:
        """The text that the model gets about a use that succeeds."""
        note = await self.use(name, **given)
        shown = await self.shown()
        assert not note.is_error, shown.content
        return shown.content

    async def refused(self, name: str, /, **given: JsonValue) -> str:
        note = await self.use(name, **given)
        shown = await self.shown()
        assert note.is_error
        assert shown.is_error
        return shown.content


Make = Callable[[BuildContainers | str], Agent]


@pytest_asyncio.fixture
async def make_agent(tmp_path: Path, database: Database) -> AsyncGenerator[Make]:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 64 << 20)
    await TaskTable(database).create(task(1))
    made: list[Workbenches] = []
    async with bench_parts(tmp_path / "state") as parts:
        index = SimpleIndex(addresses_from(parts.installer.indexes))
        gate = DependencyGate(DependencyPolicy(), index, PopularPackages.read(POPULAR))
        locks, candidates, taken = (
            ProjectLocks(UvRuns(parts.executor, parts.programs, parts.installer)),
            Candidates(database, files),
            set[str](),
        )

        async def is_anothers(_task_id: str, tool_id: str) -> bool:
            return tool_id in taken

        def make(builds: BuildContainers | str) -> Agent:
            benches = Workbenches(tmp_path / "state" / "making", parts, builds)
            made.append(benches)
            messages, outcomes, notes = MessageTable(database, files), ToolOutcomeTable(database, files), TaskNoteTable(database)
            proposals = Proposals(gate, locks, candidates, is_anothers)
            tasks = TaskTable(database)
            role = CodingRole(benches, gate, proposals, Subjects(tasks))
            kept = Transcript(messages, outcomes, ModelTurnTable(database, messages), notes, tasks)
            use_tool = UseTool(kept, (role,))
            return Agent(role, use_tool, benches, messages, outcomes, notes, candidates, taken)

        yield make
        for benches in made:
            await benches.close()
        await index.aclose()


@pytest_asyncio.fixture
async def agent(make_agent: Make) -> Agent:
    return make_agent("No engine runs.")
