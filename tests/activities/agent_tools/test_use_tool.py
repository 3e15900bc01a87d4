"""The activity `use_tool`: what it returns, raises and records."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import delete

from activities.agent_tool import AgentToolUnavailable
from engine.making.workbench.bench import Workbenches
from engine.making.workbench.runs import BenchParts
from engine.runtimes.environments.execution import Executor
from engine.store import tables
from engine.store.database import Database
from engine.store.tasks import TaskTable
from tests.activities.agent_tools.conftest import OWN, TASK, Agent
from tests.activities.agent_tools.test_building import ABOUT
from tests.store.making import task
from toolagent.contracts.task_specs import BuildTool
from toolagent.core.failures import UnknownTaskError
from toolagent_service.agents.model_notes import key_of_use
from toolagent_service.contracts.dependency_policy import DependencyRefusal, DependencyVerdict, RefusalKind

SECRET = "sk-abcdefghijklmnop1234"  # noqa: S105 - has the form of one


async def test_what_the_model_got_wrong_is_its_outcome(agent: Agent) -> None:
    assert "write_file" in await agent.refused("write_files", path="x")
    assert "'content' is missing" in await agent.refused("write_file", path="x")
    assert "outside" in await agent.refused("write_file", path="/etc/passwd", content="x")
    assert "no project" in await agent.refused("run_in_uv", project_dir="nowhere", command="true")
    assert "no file" in await agent.refused("read_file", path="x")


@pytest.mark.promise("no-use-done-twice")
async def test_a_use_that_was_recorded_is_told_again_and_not_done_again(agent: Agent) -> None:
    run = await agent.ask("write_file", path="x", content="1\n", mode="append")
    first = await agent.do(run)
    bench = await agent.bench()
    (bench.folder / "work" / "x").unlink()
    assert await agent.do(run) == first
    assert not (bench.folder / "work" / "x").exists()


async def test_an_attempt_that_died_before_its_outcome_was_whole_is_made_again(agent: Agent) -> None:
    run = await agent.ask("write_file", path="x", content="1\n", mode="append")
    first = await agent.do(run)
    key = key_of_use(run.position, run.tool_use_id)
    database = agent.outcomes._database  # pyright: ignore[reportPrivateUsage]
    async with database.write() as connection:
        await connection.execute(delete(tables.tool_outcomes).where(tables.tool_outcomes.c.key == key))
    assert await agent.do(run) == first
    assert "size: 2" in (await agent.shown()).content
    assert [note.kind.value for note in await agent.notes.after(TASK, 1)] == ["TOOL_USE", "TOOL_RESULT"]


async def test_two_uses_of_one_id_are_two(agent: Agent) -> None:
    for _ in range(2):
        await agent.told("write_file", path="x", content="1\n", mode="append")
    assert "content:\n1\n1\n" in await agent.told("read_file", path="x")


async def test_no_secret_is_in_the_log(agent: Agent) -> None:
    await agent.told("write_file", path="x", content=f"key = '{SECRET}'\n")
    await agent.told("read_file", path="x")
    lines = [note.text for note in await agent.notes.after(TASK, 1)]
    assert len(lines) == 4
    assert SECRET not in str(lines)
    assert "[TOOL_USE] write_file | {" in lines[0]


async def test_what_of_ours_does_not_work_is_raised_and_at_last_told(agent: Agent, tmp_path: Path) -> None:
    parts = agent.benches._parts  # pyright: ignore[reportPrivateUsage]
    without = BenchParts(parts._launcher, Executor(parts._launcher, "No sandbox works here."), parts.programs, parts.installer)  # pyright: ignore[reportPrivateUsage]
    agent.role._benches = Workbenches(tmp_path / "other", without, "none")  # pyright: ignore[reportPrivateUsage]
    run = await agent.ask("create_uv_project", name="words")
    with pytest.raises(AgentToolUnavailable):
        await agent.do(run)
    agent.environment.info = replace(agent.environment.info, attempt=3)
    note = await agent.do(run)
    assert note.is_error
    assert "No sandbox" in (await agent.shown()).content


async def test_the_end_of_the_agents_time_is_an_outcome(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    run = await agent.ask("run_in_uv", project_dir="words", command="sleep 60")
    note = await agent.do(run.model_copy(update={"remaining_s": 1.0}))
    assert note.is_error or "Ended after" in (await agent.shown()).content


async def test_another_attempt_has_what_is_left_of_the_time_and_not_all_of_it_again(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    run = await agent.ask("run_in_uv", project_dir="words", command="sleep 60")
    begun = time.monotonic()
    agent.environment.info = replace(agent.environment.info, started_time=datetime.now(UTC))
    await agent.do(run.model_copy(update={"until": time.time() - 5.0}))
    assert time.monotonic() - begun < 30.0


async def test_a_host_whose_clock_is_ahead_of_temporals_leaves_the_agent_its_time(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    run = await agent.ask("run_in_uv", project_dir="words", command="sleep 2")
    begun = datetime.now(UTC) - timedelta(hours=2)
    agent.environment.info = replace(agent.environment.info, started_time=begun)
    note = await agent.do(run.model_copy(update={"until": begun.timestamp() + 100.0}))
    shown = (await agent.shown()).content
    assert (note.is_error, "Ended after" in shown) == (False, False), shown


async def test_what_answers_too_late_is_not_the_end_of_the_agents_time(agent: Agent) -> None:
    agent.role._gate = Judges(TimeoutError("the index is slow"))  # pyright: ignore[reportPrivateUsage]
    run = await agent.ask("uv_add_dependency", project_dir="words", package="idna")
    with pytest.raises(TimeoutError):
        await agent.do(run)
    agent.environment.info = replace(agent.environment.info, attempt=3)
    assert (await agent.do(run)).is_error
    told = (await agent.shown()).content
    assert "the index is slow" in told
    assert "whole task" not in told


@pytest.mark.parametrize("name", ["uv_add_dependency", "register_tool"])
async def test_an_index_that_is_away_is_asked_again_before_the_model_is_told(agent: Agent, name: str) -> None:
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    away = Judges(DependencyRefusal(kind=RefusalKind.INDEX_UNAVAILABLE, message="The index is away."))
    agent.role._gate = agent.role._proposals._gate = away  # pyright: ignore[reportPrivateUsage]
    given: dict[str, JsonValue] = {"project_dir": "words", "package": "idna"} if name == "uv_add_dependency" else {**ABOUT}
    run = await agent.ask(name, **given)
    for attempt in (1, 2):
        agent.environment.info = replace(agent.environment.info, attempt=attempt)
        with pytest.raises(AgentToolUnavailable, match="away"):
            await agent.do(run)
    agent.environment.info = replace(agent.environment.info, attempt=3)
    assert (await agent.do(run)).is_error
    assert "The index is away." in (await agent.shown()).content


async def test_the_runtime_that_is_asked_for_is_the_one_that_is_submitted(agent: Agent, database: Database) -> None:
    wanted = task(2, BuildTool(tool_name=OWN, description="Count words.", runtime="docker"))
    await TaskTable(database).create(wanted)
    run = await agent.ask("register_tool", **ABOUT)
    (message,) = await agent.messages.read(TASK, run.position, run.position)
    await agent.messages.put(wanted.task_id, run.position, message)
    note = await agent.do(run.model_copy(update={"conversation_id": wanted.task_id}))
    assert note.is_error
    assert "runtime_type 'docker'" in note.summary


async def test_a_note_says_how_much_the_model_will_read(agent: Agent) -> None:
    note = await agent.use("write_file", path="x", content="\u4e00")
    assert note.size == len((await agent.shown()).content.encode())


async def test_a_name_that_is_no_text_does_not_keep_an_outcome_from_being_told(agent: Agent) -> None:
    bench = await agent.bench()
    (bench.folder / "work" / os.fsdecode(b"a\xff")).touch()
    assert "there is: a\ufffd" in await agent.refused("read_file", path="x")


async def test_a_use_of_no_task_is_our_fault(agent: Agent) -> None:
    run = await agent.ask("write_file", path="x", content="y")
    other = "create_0000000f"
    (message,) = await agent.messages.read(TASK, run.position, run.position)
    await agent.messages.put(other, run.position, message)
    with pytest.raises(UnknownTaskError):
        await agent.do(run.model_copy(update={"conversation_id": other}))


class Judges:
    """A judge with the same verdict for all packages."""

    def __init__(self, word: DependencyRefusal | Exception) -> None:
        self._word = word

    async def judge(self, requirements: Sequence[str]) -> tuple[DependencyVerdict, ...]:
        if isinstance(self._word, Exception):
            raise self._word
        # A project without any asks all the same.
        return tuple(DependencyVerdict(requirement=one, refusal=self._word) for one in requirements or ("idna",))
