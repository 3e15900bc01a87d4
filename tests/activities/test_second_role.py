"""An agent of another role uses the same loop and the same steps, for a conversation without a task."""

import uuid
from pathlib import Path

from pydantic import JsonValue
from temporalio.client import Client
from temporalio.worker import Worker

from activities.agents.models import Models
from activities.agents.opening import Openings
from activities.ask_model import AskModel
from activities.use_tool import UseTool
from engine.roles.prices import Prices
from engine.roles.prompts import Prompts
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic import AnthropicProvider
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from engine.tasks.transcript import Transcript
from tests.activities.asking import KEY, MODEL, PRICE, scenario
from tests.activities.second_role.librarian import Librarian
from tests.activities.second_role.workflow import LibraryDesk
from toolagent.testing.servers.model_server import ModelServer
from toolagent_service.contracts.agent import AgentEnd, AgentLimits, AgentRequest

CONVERSATION = f"chat:{'读' * 60}:{uuid.uuid4().hex}"
ASKED = "Where is Momo?"


async def test_a_second_role_is_a_workflow_a_role_file_and_a_list(temporal: Client, database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 64 << 20)
    messages = MessageTable(database, files)
    turns = ModelTurnTable(database, messages)
    kept = Transcript(messages, ToolOutcomeTable(database, files), turns, TaskNoteTable(database), TaskTable(database))
    (tmp_path / "librarian.md").write_text("You are a librarian.")
    said: list[dict[str, JsonValue]] = [
        {"tool_use": {"name": "look_up", "input": {"title": "Mona"}}},
        {"tool_use": {"name": "look_up", "input": {"title": "Momo"}}},
        {"text": "It is on shelf 7b."},
        {"tool_use": {"name": "answer", "input": {"place": "7b"}}},
    ]
    role, queue = Librarian(), f"library-{uuid.uuid4().hex[:8]}"
    with ModelServer(scenario({ASKED: [{**turn, "usage": {"input_tokens": 100, "output_tokens": 10}} for turn in said]})) as server:
        provider = AnthropicProvider(ProviderOptions(MODEL, KEY, server.url))
        models = Models(provider, Prompts(tmp_path), Prices(((MODEL, PRICE),)))
        request = await Openings(models, kept).open(CONVERSATION, ASKED, role, "librarian", AgentLimits())
        steps = [AskModel(models, kept, (role,)).ask_model, UseTool(kept, (role,)).use_tool]
        async with Worker(temporal, task_queue=queue, workflows=[LibraryDesk], activities=steps):
            result = await temporal.execute_workflow(LibraryDesk.run, request, id=queue, task_queue=queue)
        await provider.aclose()
    assert (result.end, result.product, result.state.turns) == (AgentEnd.DONE, "7b", 4)
    told = str([message.content for message in await messages.read(CONVERSATION)])
    assert "There is no book 'Mona'." in told
    assert "Nobody was answered yet." in told
    assert (await turns.spent(CONVERSATION)).turns == 4
    log = [note.text for note in await kept.notes.after(CONVERSATION)]
    assert any("[TOOL_USE] look_up" in line for line in log), log


def test_what_was_written_before_there_were_roles_is_the_coding_agents() -> None:
    old = '{"task_id": "create_0a1b2c3d", "prompt": "coding", "resume_from": {"started_s": 1.0, "candidate": "c", "end": "registered"}}'
    request = AgentRequest.model_validate_json(old)
    assert (request.conversation_id, request.role) == ("create_0a1b2c3d", "coding")
    assert request.resume_from is not None
    assert (request.resume_from.product, request.resume_from.end) == ("c", AgentEnd.DONE)
    assert request.model_dump(mode="json")["task_id"] == "create_0a1b2c3d"
