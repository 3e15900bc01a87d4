"""The part of the demo in which tools are made: one of a description, by a model, and two of a repository, without one."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
from httpx_sse import aconnect_sse
from pydantic import JsonValue, SecretStr
from rich.console import Console

from engine.disk.temporary import temporary_folder
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.making import TaskNote
from toolagent.contracts.making_views import MakingTask, TaskSubmitted
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import load_scenario
from workers.failures import CannotRun
from workers.settings.whole import Settings

_SCENARIO = Path(__file__).resolve().parents[2] / "data/demo/word_counter.yaml"
_LONGEST = 150
_DESCRIPTION = "Count the words of a text, whatever their case, and name the most common one; null where there is none."
_EXAMPLES: list[JsonValue] = [
    {"input": {"text": "to be or not to be"}, "expected_output": {"words": 6}},
    {"input": {"text": "A a b"}, "expected_output": {"words": 3, "most_common": "a"}},
    {"input": {"text": ""}, "expected_output": {"words": 0, "most_common": None}},
]
_APP = """\
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI(title="Units")


class Degrees(BaseModel):
    degrees: float


@app.get("/fahrenheit/{celsius}", operation_id="fahrenheit")
def fahrenheit(celsius: float) -> Degrees:
    return Degrees(degrees=celsius * 9 / 5 + 32)


@app.get("/celsius/{fahrenheit}", operation_id="celsius")
def celsius(fahrenheit: float) -> Degrees:
    return Degrees(degrees=(fahrenheit - 32) * 5 / 9)
"""


@asynccontextmanager
async def modelled(settings: Settings, console: Console) -> AsyncGenerator[Settings]:
    """The settings with a model: the one that is set, else one whose turns are replayed, which is said."""
    schemes = {"repo_schemes": tuple(dict.fromkeys((*settings.repositories.repo_schemes, "file")))}
    settings = replace(settings, repositories=settings.repositories.model_copy(update=schemes))
    if (named := settings.model.model) is not None:
        most = settings.coding.coding_limit_usd
        limit = "no limit is set" if most is None else f"${most:g} at most"
        where = settings.model.model_base_url or "Anthropic"
        console.print(
            f"  The model is {named}, at {where}. Its turns are real, and are paid for: {limit} a task "
            "(TOOL_AGENT_CODING_LIMIT_USD). Unset TOOL_AGENT_MODEL to have them replayed.",
            markup=False,
        )
        yield settings
        return
    console.print(
        "  No model is set (TOOL_AGENT_MODEL): the turns of the model are [bold]replayed[/bold] from a file. Environment, code, checks, "
        "registration and calls are real."
    )
    async with ModelServer(load_scenario(_SCENARIO), strict=False) as model:
        told = {"model": "replayed", "model_api_key": SecretStr("none"), "model_base_url": model.url}
        yield replace(settings, model=settings.model.model_copy(update=told))


async def write_a_tool(http: httpx.AsyncClient, console: Console) -> None:
    """Raises CannotRun when it does not come to a tool that answers."""
    console.print(f"[bold]5[/bold] having a tool written (POST /create_tool): {_DESCRIPTION}")
    # A second run finds it made, and would have nothing to show.
    await http.delete("/tools/word_counter")
    spec: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "word_counter", "runtime": "uv", "description": _DESCRIPTION}
    made = await _made(http, console, {**spec, "examples": _EXAMPLES})
    cost = f"; its turns cost ${made.cost_usd:.4f}" if made.cost_usd else ""
    behaviour = made.evidence.behaviour if made.evidence else "unverified"
    console.print(f"  it can be called, its behaviour is {behaviour}{cost}")
    await _call(http, console, "word_counter", {"text": "the cat and the hat"})


async def deploy_a_repository(http: httpx.AsyncClient, console: Console) -> None:
    """Raises CannotRun when it does not come to tools that answer."""
    if shutil.which("git") is None:
        console.print("[bold]6[/bold] (git is not installed, so no repository is deployed)")
        return
    console.print("[bold]6[/bold] making tools of a small repository with a FastAPI app, without a model")
    for tool_id in ("units_celsius", "units_fahrenheit"):
        await http.delete(f"/tools/{tool_id}")
    with temporary_folder("tool-agent-demo-") as folder:
        repository = await asyncio.to_thread(_repository, folder / "units")
        await _made(http, console, {"type": "github_deploy", "repo_url": f"file://{repository}", "tool_name": "units"})
    await _call(http, console, "units_fahrenheit", {"celsius": 21.5})


async def _made(http: httpx.AsyncClient, console: Console, spec: Mapping[str, JsonValue]) -> MakingTask:
    answer = await http.post("/create_tool", json={"task_spec": dict(spec)})
    if not answer.is_success:
        raise CannotRun(f"The task was not taken: {answer.text}")
    task_id = TaskSubmitted.model_validate_json(answer.content).task_id
    async with aconnect_sse(http, "GET", f"/tasks/{task_id}/events", timeout=600) as events:
        async for event in events.aiter_sse():
            if event.event == "note":
                text = TaskNote.model_validate_json(event.data).text
                console.print(f"  … {text.partition('INFO: ')[2][:_LONGEST] or text[:_LONGEST]}", markup=False, highlight=False)
    made = MakingTask.model_validate_json((await http.get(f"/tasks/{task_id}")).content)
    if made.status is not TaskState.COMPLETED:
        raise CannotRun(f"No tool was made: {made.reason}")
    return made


async def _call(http: httpx.AsyncClient, console: Console, tool_id: str, params: dict[str, JsonValue]) -> None:
    result = ToolResult.model_validate_json((await http.post("/run_tool", json={"tool_id": tool_id, "params": params})).content)
    if result.error is not None:
        raise CannotRun(f"The call of {tool_id} failed: {result.error.message}")
    console.print(f"  {tool_id}({json.dumps(params)}) = {json.dumps(result.result)}", markup=False)


def _repository(folder: Path) -> Path:
    folder.mkdir()
    folder.parent.chmod(0o755)  # who clones it in the sandbox is another user
    (folder / "app.py").write_text(_APP)
    (folder / "requirements.txt").write_text("fastapi\n")
    who = ("-c", "user.name=demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgSign=false")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "An app")):
        subprocess.run(("git", "-C", str(folder), *who, *words), check=True, capture_output=True)  # noqa: S607 - no shell, our words
    return folder
