"""The evidence of a version: its source, its maker, the turns and the cost."""

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest

from engine.making.candidates import Candidates
from engine.making.evidence import Accounts, evidence_for, lock_of
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.tasks import TaskTable
from tests.store.making import AT, BUILD, task
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate, CheckResult
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource, McpSource, ScriptLanguage, ScriptSource, ToolSource
from toolagent_service.agents.ledger import Asked
from toolagent_service.contracts.making_steps import VerifyStep
from toolagent_service.contracts.model import ModelTurn, Text, Usage

TASK = "create_00000001"
STEP = VerifyStep(task_id=TASK, spec=BUILD, candidate="file", round=2, commit="c0ffee")
LOCK = "idna==3.10 --hash=sha256:0\n"
FILES = f"file_{'0' * 32}"
PASSED = (CheckResult(check="starts", passed=True),)


def entry(tool_id: str = "word_counter", source: ToolSource | None = None) -> ToolEntry:
    return ToolEntry(manifest=ToolManifest(tool_id=tool_id, name="A tool"), sources=(source or LocalSource(host_dir="a", content=FILES),))


def turn(model: str = "claude-1-20260101", cost_usd: float | None = 0.25) -> ModelTurn:
    usage = Usage(input_tokens=10, output_tokens=5)
    return ModelTurn(content=(Text(text="So."),), stop_reason="end_turn", model=model, usage=usage, cost_usd=cost_usd)


@pytest.fixture
def files(database: Database, tmp_path: Path) -> FileStore:
    return FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 10_000_000)


@pytest.fixture
def accounts(database: Database, files: FileStore) -> Accounts:
    return Accounts(TaskTable(database), ModelTurnTable(database, MessageTable(database, files)))


async def test_what_was_built_without_a_model_names_none_and_costs_nothing(accounts: Accounts) -> None:
    await accounts.tasks.create(task())
    assert await accounts.tasks.claim_slot(TASK, 1)
    candidate = Candidate(entries=(entry(),), locks={"word_counter": "abc"}, left_out=("POST /x: It takes a form.",))
    found = await accounts.evidence(STEP, candidate, PASSED, "verified", 1.5)
    assert (found.provider, found.model, found.answered_by, found.prompts) == (None, None, (), ())
    assert (found.turns, found.tokens, found.cost_usd, found.unpriced_turns) == (0, 0, 0.0, 0)
    assert (found.source, found.lock, found.left_out, found.commit) == (FILES, "abc", candidate.left_out, "c0ffee")
    assert (found.checks, found.behaviour, found.rounds, found.seconds) == (PASSED, "verified", 2, 1.5)
    assert 0 < found.total_seconds < 60


async def test_what_a_model_made_names_it_its_prompts_and_what_it_cost(accounts: Accounts) -> None:
    asked = Asked("anthropic", "claude-1", "coding@000000000000")
    for number, (said, prompt) in enumerate([(turn(), asked.prompt), (turn(), asked.prompt), (turn("claude-1-b", None), "coding@1")]):
        at = AT + timedelta(seconds=number)
        origin = Asked(asked.provider, asked.model, prompt)
        await accounts.turns.record(TASK, str(number), said, at, at, position=2 * number + 2, asked=origin)
    found = await accounts.evidence(STEP, Candidate(entries=(entry(),)), PASSED)
    assert (found.provider, found.model, found.answered_by) == ("anthropic", "claude-1", ("claude-1-20260101", "claude-1-b"))
    assert found.prompts == ("coding@000000000000", "coding@1")
    assert (found.turns, found.tokens, found.cost_usd, found.unpriced_turns) == (3, 45, 0.5, 1)


async def test_each_of_several_tools_has_its_own_files_and_lock(accounts: Accounts) -> None:
    other = entry("other", LocalSource(host_dir="b", content=f"file_{'1' * 32}"))
    candidate = Candidate(
        entries=(entry(), other, entry("third", DockerSource(host_dir="c", dockerfile="Dockerfile"))), locks={"other": "b"}
    )
    whole = await accounts.evidence(STEP, candidate, PASSED)
    found = [evidence_for(one, candidate, whole) for one in candidate.entries]
    assert [(one.source, one.lock) for one in found] == [(FILES, None), (f"file_{'1' * 32}", "b"), (None, None)]
    assert {one.task_id for one in found} == {TASK}


async def test_a_candidate_is_kept_with_the_hashes_of_its_locks(database: Database, files: FileStore, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in {"main.py": "print()", "requirements.lock": LOCK}.items():
        (folder / name).write_text(text)
    candidates = Candidates(database, files)
    kept = await candidates.keep(TASK, Candidate(entries=(entry(source=LocalSource(host_dir="a")),)), {"word_counter": folder})
    candidate = await candidates.load(kept)
    assert candidate.locks == {"word_counter": hashlib.sha256(LOCK.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("source", "names", "is_locked"),
    [
        (LocalSource(host_dir="a"), ("main.py", "requirements.lock"), True),
        (LocalSource(host_dir="a"), ("main.py", "uv.lock", "pyproject.toml"), True),
        (LocalSource(host_dir="a"), ("main.py", "requirements.txt"), False),
        (LocalSource(host_dir="a"), ("main.py",), False),
        (ScriptSource(script_path="a.py", language=ScriptLanguage.PYTHON), ("a.py", "requirements.lock"), True),
        (ScriptSource(script_path="gone.py", language=ScriptLanguage.PYTHON), ("requirements.lock",), False),
        (ScriptSource(script_path="a.js", language=ScriptLanguage.NODEJS), ("a.js", "package-lock.json", "package.json"), True),
        (DockerSource(host_dir="a", dockerfile="Dockerfile"), ("Dockerfile", "requirements.lock"), False),
        (McpSource(tool_name="act", host_dir="a"), ("main.py", "requirements.lock"), True),
        (McpSource(tool_name="act", host_dir="a", command=("x",)), ("uv.lock", "pyproject.toml"), True),
        (McpSource(tool_name="act", host_dir="a", command=("x",)), ("package-lock.json", "package.json"), True),
        (McpSource(tool_name="act", host_dir="a", command=("x",)), ("package.json",), False),
    ],
)
def test_the_lock_is_what_the_environment_is_built_from(
    tmp_path: Path, source: ToolSource, names: tuple[str, ...], is_locked: bool
) -> None:
    for name in names:
        (tmp_path / name).write_text(name)
    lock = next((name for name in names if "lock" in name), "")
    assert lock_of(tmp_path, source) == (hashlib.sha256(lock.encode()).hexdigest() if is_locked else None)
