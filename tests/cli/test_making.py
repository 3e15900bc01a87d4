"""Making tools from the command line, with the real front door."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import update
from typer.testing import CliRunner, Result

from engine.registry.registry import ToolRegistry
from engine.store import tables
from engine.store.database import Database
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import Ending, TaskTable
from tests.cli.front_door import BOUND_S, FrontDoor, front_door
from tests.cli.test_terminal import COLOUR, INTERRUPTIBLE, at_a_terminal
from toolagent.cli.app import app as command_line
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.making import CheckResult, Evidence, Stage, TaskNote, TaskNoteKind
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import BuildTool, Example, GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent_service.agents.coding_log import NewNote

Run = Callable[..., Result]


@pytest.fixture
def door(sqlite_url: str) -> Generator[FrontDoor]:
    with front_door(sqlite_url) as door:
        yield door


@pytest.fixture
def run(door: FrontDoor) -> Run:
    def invoke(*words: str, text: str | None = None) -> Result:
        return CliRunner().invoke(command_line, words, input=text, env={"TOOL_AGENT_URL": door.url, "TOOL_AGENT_API_KEY": None})

    return invoke


def specs(door: FrontDoor) -> list[BuildTool | GithubDeploy | RepairTool]:
    return [request.spec for request in door.client.making.started.values()]


def begun(run: Run) -> str:
    result = run("create", "Count words")
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def end(door: FrontDoor, task_id: str, status: Ending = TaskState.COMPLETED, reason: str = "") -> None:
    """Run a task to its end."""

    async def work(tasks: TaskTable, notes: TaskNoteTable) -> None:
        await tasks.claim_slot(task_id, 2)
        await tasks.enter_stage(task_id, Stage.BUILD)
        await notes.write(task_id, (NewNote("said", TaskNoteKind.TEXT, "[TEXT] Done. [bold]"),))
        await tasks.settle(task_id, status, reason)

    door.do(work)


def test_a_tool_is_asked_for_and_its_task_is_printed(run: Run, door: FrontDoor) -> None:
    result = run("create", "Count words")
    [task_id] = door.client.making.started
    assert (result.exit_code, result.stdout) == (0, f"{task_id}\n")
    assert f"toolagent task {task_id} --follow" in result.stderr
    assert json.loads(run("create", "Count words", "--json").stdout)["status"] == "pending"


def test_options_make_a_specification(run: Run, door: FrontDoor, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"input": {"a": 1}, "expected_output": 2}')
    (tmp_path / "more.json").write_text('[{"input": {"a": 2}, "expected_output": 3}]')
    (tmp_path / "spec.json").write_text('{"type": "build_tool", "tool_name": "x", "description": "d"}')
    examples = ("--example", str(tmp_path / "one.json"), "--example", str(tmp_path / "more.json"))
    given = (Example(input={"a": 1}, expected_output=2), Example(input={"a": 2}, expected_output=3))
    for words, spec in (
        (("--repo", "https://host/user/My.Project.git"), GithubDeploy(repo_url="https://host/user/My.Project.git", tool_name="my_project")),
        (
            ("--repo", "https://host/u/p", "--ref", "v1", "--path", "api", "--env", "A=b=c", "--host", "x.test", "--operation", "get*"),
            GithubDeploy(
                repo_url="https://host/u/p", tool_name="p", ref="v1", path="api", env={"A": "b=c"}, hosts=("x.test",), operations=("get*",)
            ),
        ),
        (
            ("--repo", "https://host/u/p", "--server-url", "https://x.test", "--probe", "full"),
            GithubDeploy(repo_url="https://host/u/p", tool_name="p", server_url="https://x.test", probe="full"),
        ),
        (("d", "--name", "n", "--runtime", "docker"), BuildTool(tool_name="n", description="d", runtime="docker")),
        (("Count words", *examples), BuildTool(tool_name="count_words", description="Count words", examples=given)),
        (("--spec", str(tmp_path / "spec.json"), "--name", "y"), BuildTool(tool_name="y", description="d")),
        (("做一个数一数的工具",), BuildTool(tool_name="shuyishu", description="做一个数一数的工具")),
        (("数一数", "--runtime", "uv"), BuildTool(tool_name="shuyishu", description="数一数", runtime="uv")),
        (("--spec", "-"), BuildTool(tool_name="takes_text", description="It takes a text.")),
    ):
        result = run("create", *words, text="It takes a text.")
        assert result.exit_code == 0, result.stderr
        assert specs(door)[-1] == spec


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "Say what the tool is to do"),
        (("--repo", "https://host/u/p", "--env", "A"), 2, "--env takes NAME=VALUE"),
        (("d", "--example", "/nowhere.json"), 2, "/nowhere.json"),
        (("d", "--name", "No Name"), 1, "'no_name' would do"),
    ],
)
def test_what_cannot_be_begun_is_said_with_its_remedy(run: Run, door: FrontDoor, words: tuple[str, ...], code: int, said: str) -> None:
    result = run("create", *words)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert specs(door) == []


@pytest.mark.parametrize(
    "words",
    [
        ("create", "caf\udce9"),
        ("create", "Count words", "--name", "caf\udce9"),
        ("create", "Count words", "--key", "caf\udce9"),
        ("create", "--spec", "-"),
        ("repair", "echo", "--error", "caf\udce9"),
        ("repair", "echo", "--description", "caf\udce9"),
        ("task", "create_00000001", "--say", "caf\udce9"),
        ("task", "create_00000001", "--say", " "),
        ("task", "create_00000001", "--out", "/nowhere"),
        ("task", "create_00000001", "--output", "/nowhere"),
        ("task", "call-12345678", "--say", ""),
        ("tasks", "--tool", "caf\udce9"),
    ],
)
def test_what_cannot_be_sent_or_means_nothing_is_wrong_usage(door: FrontDoor, words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command_line, words, input=b"caf\xe9", env={"TOOL_AGENT_URL": door.url, "TOOL_AGENT_API_KEY": None})
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert result.stderr.strip()
    assert specs(door) == []


def test_who_gets_no_answer_is_told_how_to_ask_for_the_same_again(run: Run, door: FrontDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolagent.client.http_making._ASKED_AGAIN_S", 0.0)
    door.client.making.away = True
    result = run("create", "Count words")
    key = result.stderr.partition("--key ")[2].split()[0]
    assert (result.exit_code, len(key)) == (1, 32)
    door.client.making.away = False
    assert run("create", "Count words", "--key", key).stdout == run("create", "Count words", "--key", key).stdout
    assert len(specs(door)) == 1


@pytest.mark.parametrize(
    ("unpriced", "cost_usd", "shown"),
    [(0, 0.5, "$0.5000"), (1, 0.0, "1 turn of unknown price"), (3, 0.5, "$0.5000 and 3 turns of unknown price")],
)
def test_a_cost_that_is_not_known_is_not_nothing(run: Run, door: FrontDoor, unpriced: int, cost_usd: float, shown: str) -> None:
    task_id = begun(run)

    async def ask(database: Database) -> None:
        async with database.write() as connection:
            await connection.execute(update(tables.tasks).values(unpriced_turns=unpriced, cost_usd=cost_usd))

    async def work(tasks: TaskTable, _notes: TaskNoteTable) -> None:
        await tasks.enter_stage(task_id, Stage.BUILD)

    door.do(work)
    door.database(ask)
    for command in (("tasks",), ("task", task_id)):
        assert shown in run(*command).stdout
    assert ("$0.0000" in run("task", task_id).stdout) is (unpriced == 0)


def test_one_key_is_one_task(run: Run, door: FrontDoor) -> None:
    assert run("create", "Count words", "--key", "k").stdout == run("create", "Count words", "--key", "k").stdout
    assert run("create", "Other words", "--key", "k").exit_code == 1
    assert len(specs(door)) == 1


def test_a_tool_is_repaired_and_rolled_back(run: Run, door: FrontDoor) -> None:
    async def register(registry: ToolRegistry) -> None:
        for version in ("1.0.0", "1.1.0"):
            await registry.register(
                ToolManifest(tool_id="echo", name="Echo", version=version), (LocalSource(host_dir="echo", content=f"file_{'0' * 32}"),)
            )

    door.registry(register)
    assert run("repair", "echo", "--error", "HTTP 503").stdout.startswith("repair_")
    assert specs(door) == [RepairTool(tool_id="echo", error="HTTP 503")]
    assert run("repair", "ecko").exit_code == 1
    rolled = json.loads(run("rollback", "echo", "--from", "1.1.0", "--json").stdout)
    assert rolled["active_version"] == "1.0.0"
    assert "has no version '1.1.O'" in run("rollback", "echo", "--from", "1.1.O").stderr
    assert "no_earlier" in run("rollback", "echo").stderr.lower().replace(" ", "_")


def test_tasks_are_a_table_and_filtered(run: Run, door: FrontDoor) -> None:
    failed, other = begun(run), begun(run)
    end(door, failed, TaskState.FAILED, "No such package.")
    lines = run("tasks").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["task", other, failed]
    assert "No such package." in lines[2]
    assert [task["task_id"] for task in json.loads(run("tasks", "--status", "failed", "--json").stdout)["tasks"]] == [failed]
    assert "No task fits." in run("tasks", "--type", "repair_tool").stderr
    assert f"--before {other}" in run("tasks", "--limit", "1").stderr


@pytest.mark.parametrize(("status", "code"), [(TaskState.COMPLETED, 0), (TaskState.FAILED, 1), (TaskState.CANCELLED, 1)])
def test_a_task_is_followed_line_by_line_and_its_end_is_the_exit_code(run: Run, door: FrontDoor, status: Ending, code: int) -> None:
    task_id = begun(run)

    def work() -> None:
        assert door.followed.wait(BOUND_S)
        end(door, task_id, status, "Why.")

    working = threading.Thread(target=work)
    working.start()
    result = run("task", task_id, "--follow")
    working.join(BOUND_S)
    assert result.exit_code == code
    assert [
        word for word in ("pending", "[STAGE] build begins", "[TEXT] Done. [bold]", "[COST] $0.00", "Why.") if word not in result.stderr
    ] == []
    assert result.stdout.splitlines()[1].split()[:2] == [task_id, status.value]
    assert run("task", task_id, "--json").exit_code == code


def test_an_ended_task_is_shown_with_its_evidence_and_its_whole_reason(run: Run, door: FrontDoor) -> None:
    task_id = begun(run)
    checks = (CheckResult(check="starts", passed=True, details="It was up."),)
    evidence = Evidence(task_id=task_id, at=datetime(2026, 11, 21, tzinfo=UTC), checks=checks, left_out=("POST /x: no",))

    async def work(tasks: TaskTable, _notes: TaskNoteTable) -> None:
        await tasks.settle(task_id, TaskState.COMPLETED, "a can be called.\n\nLeft out:\n- POST /x: no", evidence=evidence)

    door.do(work)
    shown = run("task", task_id)
    assert "a can be called." in shown.stderr
    assert [line.split() for line in shown.stdout.splitlines() if "It was up." in line] == [["starts", "ok", "0.0", "It", "was", "up."]]
    assert "left out: POST /x: no" in shown.stdout
    assert "- POST /x: no" in shown.stderr


def test_a_task_that_goes_on_is_shown_with_its_log_and_no_failure(run: Run, door: FrontDoor) -> None:
    task_id = begun(run)
    said = run("task", task_id, "--say", "Faster, please.", "--log")
    assert (said.exit_code, "[GUIDANCE] Faster, please." in said.stdout) == (0, True)
    assert [guidance.text for _, guidance in door.client.making.said] == ["Faster, please."]
    assert run("task", task_id, "--cancel").exit_code == 0
    assert door.client.making.cancelled == [task_id]
    assert run("task", "call-12345678", "--say", "x").exit_code == 2


def test_a_connection_that_breaks_is_made_again_where_it_broke(run: Run, door: FrontDoor) -> None:
    task_id, seen = begun(run), list[int]()

    async def note(_tasks: TaskTable, notes: TaskNoteTable) -> None:
        await notes.write(task_id, (NewNote(f"k{len(seen)}", TaskNoteKind.TEXT, "x"),))

    door.do(note)
    with ToolAgentHttp(door.url) as service:
        for event in service.task_events(task_id):
            if isinstance(event, TaskNote):
                seen.append(event.position)
                match len(seen):
                    case 1:
                        door.restart()
                        door.do(note)
                    case 2:
                        end(door, task_id)
                    case _:
                        pass
    assert seen == [*range(1, 9)]


def test_what_was_seen_before_is_not_shown_again(run: Run, door: FrontDoor) -> None:
    task_id = begun(run)
    end(door, task_id)
    with ToolAgentHttp(door.url) as service:
        events = [*service.task_events(task_id)]
        notes = [event.position for event in events if isinstance(event, TaskNote)]
        assert notes == [*range(1, 7)]
        assert [*service.task_events(task_id, after=6)] == []


def test_what_other_scripts_end_a_line_with_comes_as_it_was_written(run: Run, door: FrontDoor) -> None:
    task_id, strange = begun(run), "a\u2028b\u2029c\u0085d\ve"

    async def note(_tasks: TaskTable, notes: TaskNoteTable) -> None:
        await notes.write(task_id, (NewNote("strange", TaskNoteKind.TEXT, strange),))

    door.do(note)
    end(door, task_id)
    with ToolAgentHttp(door.url) as service:
        assert strange in [event.text for event in service.task_events(task_id) if isinstance(event, TaskNote)]


def test_ctrl_c_leaves_the_task_running_and_says_how_to_follow_it(run: Run, door: FrontDoor) -> None:
    task_id = begun(run)
    command = [*INTERRUPTIBLE, "task", task_id, "--follow"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={"TOOL_AGENT_URL": door.url}) as process:
        assert process.stderr is not None
        first = process.stderr.readline() + process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=BOUND_S)
    assert (process.returncode, door.client.making.cancelled) == (130, [])
    assert f"{task_id} pending".encode() in first
    assert f"toolagent task {task_id} --follow".encode() in messages
    assert f"toolagent task {task_id} --cancel".encode() in messages
    assert b"Traceback" not in messages


def test_each_task_is_one_line_at_a_terminal_and_its_whole_reason_is_shown_with_it(run: Run, door: FrontDoor) -> None:
    reason = "No model is set that could write it. Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or TOOL_AGENT_MODEL_BASE_URL)."
    task_id = run("create", "Count the words of a text that has very many").stdout.strip()
    end(door, task_id, TaskState.FAILED, reason)
    lines = COLOUR.sub("", at_a_terminal(door.url, "tasks")).splitlines()
    assert [line.split()[0] for line in lines] == ["task", task_id]
    assert max(map(len, lines)) <= 100
    assert lines[1].rstrip().endswith("…")
    assert reason in run("tasks").stdout
    assert reason in run("task", task_id).stderr
