"""What making tools costs: a scripted build beside its own times, a deploy beside doing it by hand, and the bytes of a long history."""

import asyncio
import contextlib
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
from pydantic import JsonValue
from temporalio.client import Client
from uv import find_uv_bin

from bench.conversations import BUILD, BUILD_COMMANDS, BUILD_TURNS, TALK, TURN_S, conversations
from bench.processes import Child, bare_environment
from bench.results import Single
from bench.scripted import ScriptedModel
from bench.service import ROOT, OurService, make_catalog
from engine.disk.removal import remove
from engine.network.ports import free_port
from toolagent.client import names
from toolagent.client.plugin import ToolAgentPlugin
from toolagent.contracts.making import Stage, TaskNote, TaskNoteKind
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.agent import LoopState

_DEPLOYED = "bench_deployed"
_FILES = ROOT / "bench/deployed"
_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgSign=false")
_DATA = "data: "
_BOUND_S = 300.0
_TALK_S = 1800.0
_MB = 1_000_000
_TOKENS = 100_000_000
"""Each turn reads all that was said before, and counts in full however much of it is cached: two hundred of them read twenty million."""


class NotMadeError(Exception):
    """A task has ended without a tool; the message has its reason."""


@dataclass(frozen=True, slots=True)
class Made:
    """A task that was completed, the lines of its log, and the seconds from asking until whoever follows it knew."""

    task: MakingTask
    notes: Sequence[TaskNote]
    seconds: float

    @property
    def stages(self) -> Mapping[Stage, float]:
        """Seconds."""
        return {one.stage: _between(one.started_at, one.ended_at) for one in self.task.stages}

    @property
    def uses_s(self) -> float:
        """What the uses of tools took, which come one after the other."""
        begun, ended = ([note.at for note in self.notes if note.kind is kind] for kind in (TaskNoteKind.TOOL_USE, TaskNoteKind.TOOL_RESULT))
        return sum(_between(begin, end) for begin, end in zip(begun, ended, strict=True))


@dataclass(frozen=True, slots=True)
class Workshop:
    """A service that makes tools, with a model that keeps to its script."""

    service: OurService
    folder: Path
    calls: int

    def made(self, spec: Mapping[str, JsonValue], bound_s: float = _BOUND_S, then: Callable[[], object] = lambda: None) -> Made:
        """By a task that is followed to its end; `then` uses its tools, which are removed again. Raises NotMadeError."""
        http, begin = self.service.http, time.perf_counter()
        answer = http.post("/create_tool", json={"description": "for the measurements", "task_spec": dict(spec)})
        task_id = answer.raise_for_status().json()["task_id"]
        with http.stream("GET", f"/tasks/{task_id}/events", timeout=bound_s) as events:
            events.raise_for_status()
            lines = [line.removeprefix(_DATA) for line in _in_time(events, begin + bound_s) if line.startswith(_DATA)]
        took = time.perf_counter() - begin
        task = MakingTask.model_validate_json(http.get(f"/tasks/{task_id}").raise_for_status().content)
        if task.status is not TaskState.COMPLETED:
            raise NotMadeError(f"{task_id} is {task.status}: {task.reason}")
        then()
        for tool_id in task.tool_ids if task.built else ():
            self.service.remove_tool(tool_id)
        notes = [TaskNote.model_validate_json(line) for line in lines if '"position":' in line]
        return Made(task, notes, took)


@contextmanager
def workshop(folder: Path, calls: int) -> Generator[Workshop]:
    """`calls` is how many tools the longest conversation uses."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        model = ScriptedModel(folder, conversations(calls))
        stack.callback(model.child.stop)
        settings = {**model.settings, "REPO_SCHEMES": "https,file"}
        settings |= {"CODING_TURNS": str(calls + BUILD_TURNS), "CODING_TOKENS": str(_TOKENS)}
        service = OurService(folder / "service", make_catalog(folder / "data"), settings)
        stack.callback(service.stop)
        yield Workshop(service, folder, calls)


def measure_builds(shop: Workshop, times: int) -> list[Single]:
    """Ten turns through us, and what the model and the commands of them take by themselves, in turns; medians in milliseconds."""
    spec: dict[str, JsonValue] = {"type": "build_tool", "tool_name": BUILD, "description": "Count the words of a text.", "runtime": "uv"}
    ours: list[float] = []
    told: list[float] = []
    whole: list[float] = []
    by_hand: list[float] = []
    model = BUILD_TURNS * TURN_S
    # The first finds nothing imported and nothing cached.
    for number in range(times + 1):
        made, commands = shop.made(spec), _by_hand(shop.folder / f"build-{number}")
        if number:
            ours.append(made.stages[Stage.BUILD])
            told.append(model + made.uses_s)
            whole.append(made.seconds)
            by_hand.append(model + commands)
    return [
        _ms("build.ours", "build of ten turns, through us", ours),
        _ms("build.hand", "the model's ten turns, and the commands by hand", by_hand),
        _ms("build.log", "the model's ten turns, and the uses of tools as the task's log has them", told),
        _ms("build.task", "the same with the gate and all else, until the task has ended", whole),
    ]


def measure_deploys(shop: Workshop, times: int) -> list[Single]:
    """A small repository without a model, through us and by hand, in turns; medians in milliseconds.

    `deploy.ours`: with the packages as an earlier deploy has left them, as by hand they are in uv's cache; `deploy.anew`: without.
    """
    spec: dict[str, JsonValue] = {
        "type": "github_deploy",
        "repo_url": repository_of(_FILES, shop.folder / "repository"),
        "tool_name": _DEPLOYED,
    }
    took: dict[str, list[float]] = {"ours": [], "anew": [], "hand": []}
    stages: dict[Stage, list[float]] = {stage: [] for stage in Stage}
    shop.made(spec)
    _deployed_by_hand(shop.folder / "deploy", shop.folder / "cache")
    for number in range(times):
        made = shop.made(spec)
        took["ours"].append(made.seconds)
        for stage, lasted in made.stages.items():
            stages[stage].append(lasted)
        took["hand"].append(_deployed_by_hand(shop.folder / f"deploy-{number}", shop.folder / "cache"))
        remove(shop.service.state / "environments")
        took["anew"].append(shop.made(spec).seconds)
    labels = {"ours": "through us", "anew": "through us, without any packages", "hand": "by hand"}
    singles = [_ms(f"deploy.{way}", f"deploy of a repository, {labels[way]}", seconds) for way, seconds in took.items()]
    return [*singles, *(_ms(f"deploy.ours.{stage}", f"of it, through us: {stage}", lasted) for stage, lasted in stages.items())]


def measure_history(shop: Workshop) -> list[Single]:
    """How many bytes of Temporal's history a task takes that uses tools `shop.calls` times: all runs of its workflows, and the largest."""
    spec: dict[str, JsonValue] = {"type": "build_tool", "tool_name": TALK, "description": "Count the words of a text.", "runtime": "uv"}
    made = shop.made(spec, _TALK_S)
    return asyncio.run(_history(shop, made.task.task_id, made.seconds))


async def _history(shop: Workshop, task_id: str, took: float) -> list[Single]:
    client = await Client.connect(shop.service.temporal, plugins=[ToolAgentPlugin()])
    sizes: list[int] = []
    events = 0
    for workflow_id in (task_id, names.coding_id(task_id)):
        async for run in client.list_workflows(f"WorkflowId = '{workflow_id}'"):
            about = (await client.get_workflow_handle(run.id, run_id=run.run_id).describe()).raw_description.workflow_execution_info
            sizes.append(about.history_size_bytes)
            events += about.history_length
    state = await client.get_workflow_handle(names.coding_id(task_id)).query(names.PROGRESS, result_type=LoopState)
    if state.tool_calls != shop.calls:
        raise NotMadeError(f"{task_id} has used tools {state.tool_calls} times, not {shop.calls}")
    about, name = f"task of {shop.calls} tool calls", f"history.{shop.calls}"
    return [
        Single(name=f"{name}.all", label=f"history of a {about}: all {len(sizes)} runs", value=sum(sizes) / _MB, unit="MB"),
        Single(name=f"{name}.largest", label="of these the largest run", value=max(sizes) / _MB, unit="MB"),
        Single(name=f"{name}.events", label="events in all", value=events, unit=""),
        Single(name=f"{name}.tokens", label="tokens of its conversation at the end", value=state.last_usage.total, unit=""),
        Single(name=f"{name}.read", label="tokens read and written in all turns", value=state.tokens, unit=""),
        Single(name=f"{name}.took", label=f"a {about}, from asking to its end", value=took, unit="s"),
    ]


def _in_time(events: httpx.Response, until: float) -> Iterator[str]:
    """Something is said every few seconds. Raises TimeoutError."""
    for line in events.iter_lines():
        if time.perf_counter() > until:
            raise TimeoutError("a task has not ended in its time")
        yield line


def _between(begin: datetime, end: datetime | None) -> float:
    return (end - begin).total_seconds() if end else 0.0


def _ms(name: str, label: str, seconds: Sequence[float]) -> Single:
    return Single(name=name, label=label, value=statistics.median(seconds) * 1000, unit="ms")


def _by_hand(folder: Path) -> float:
    """The commands that the build gives, and those that it takes to make an environment and a lock."""
    folder.mkdir()
    (folder / "wanted.txt").touch()
    uv, environment = find_uv_bin(), folder / ".venv"
    made = [uv, "venv", "--no-project", "--python", sys.executable, str(environment)]
    locked = [uv, "pip", "compile", "wanted.txt", "--generate-hashes", "--universal", "--output-file", "lock.txt"]
    begin = time.perf_counter()
    for command in (made, *(["/bin/sh", "-c", command] for command in BUILD_COMMANDS), locked):
        subprocess.run(command, cwd=folder, env=bare_environment(), capture_output=True, check=True)
    return time.perf_counter() - begin


def repository_of(files: Path, folder: Path) -> str:
    """The URL of a new repository that holds them."""
    shutil.copytree(files, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "For the measurements")):
        subprocess.run(("git", *_WHO, *arguments), cwd=folder, check=True, capture_output=True)  # noqa: S607
    return f"file://{folder}"


def _deployed_by_hand(folder: Path, cache: Path) -> float:
    """`uv sync`, start, one request that is answered."""
    shutil.copytree(_FILES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    environment = bare_environment() | {"UV_CACHE_DIR": str(cache)}
    port = free_port()
    serve = [str(folder / ".venv/bin/python"), "-m", "uvicorn", "app:app", "--port", str(port)]
    begin = time.perf_counter()
    subprocess.run([find_uv_bin(), "sync", "--python", sys.executable], cwd=folder, env=environment, capture_output=True, check=True)
    server = Child(serve, folder, "server")
    try:
        server.ready(lambda: _answers(f"http://127.0.0.1:{port}/count"), _BOUND_S)
        return time.perf_counter() - begin
    finally:
        server.stop()


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.post(url, json={"text": "one two"}, trust_env=False).is_success
    return False
