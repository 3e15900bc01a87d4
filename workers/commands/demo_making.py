"""The part of the demo that makes tools: one of a description, by a model, and two of a repository, without a model."""

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue, SecretStr
from rich.console import Console

from engine.disk.temporary import temporary_folder
from toolagent.client.http import Refused, ToolAgentHttp
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.making import TaskNote
from toolagent.contracts.making_views import MakingTask
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
    """The settings with a model: the set one, otherwise one whose turns are replayed. Prints which."""
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


def write_a_tool(http: ToolAgentHttp, console: Console) -> None:
    """Raises CannotRun if no tool is made that answers."""
    console.print(f"[bold]5[/bold] having a tool written (POST /create_tool): {_DESCRIPTION}")
    _remove(http, "word_counter")
    spec: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "word_counter", "runtime": "uv", "description": _DESCRIPTION}
    made = _made(http, console, {**spec, "examples": _EXAMPLES})
    cost = f"; its turns cost ${made.cost_usd:.4f}" if made.cost_usd else ""
    behaviour = made.evidence.behaviour if made.evidence else "unverified"
    console.print(f"  it can be called, its behaviour is {behaviour}{cost}")
    _show_call(http, console, "word_counter", {"text": "the cat and the hat"})


def deploy_a_repository(http: ToolAgentHttp, console: Console) -> None:
    """Raises CannotRun if no tools are made that answer."""
    if shutil.which("git") is None:
        console.print("[bold]6[/bold] (git is not installed, so no repository is deployed)")
        return
    console.print("[bold]6[/bold] making tools of a small repository with a FastAPI app, without a model")
    for tool_id in ("units_celsius", "units_fahrenheit"):
        _remove(http, tool_id)
    with temporary_folder("tool-agent-demo-") as folder:
        repository = _repository(folder / "units")
        _made(http, console, {"type": "github_deploy", "repo_url": f"file://{repository}", "tool_name": "units"})
    _show_call(http, console, "units_fahrenheit", {"celsius": 21.5})


def _remove(http: ToolAgentHttp, tool_id: str) -> None:
    """Remove the tool of an earlier run, which would be found instead of made."""
    with suppress(Refused):
        http.destroy(tool_id)


def _made(http: ToolAgentHttp, console: Console, spec: dict[str, JsonValue]) -> MakingTask:
    task_id = http.create_tool("", spec).task_id
    for event in http.task_events(task_id, patience_s=0.0):
        if isinstance(event, TaskNote):
            text = event.text.partition("INFO: ")[2] or event.text
            console.print(f"  … {text[:_LONGEST]}", markup=False, highlight=False)
    made = http.making_task(task_id)
    if made.status is not TaskState.COMPLETED:
        raise CannotRun(f"No tool was made: {made.reason}")
    return made


def call(http: ToolAgentHttp, tool_id: str, params: dict[str, JsonValue]) -> JsonValue:
    """The output of a tool. Raises CannotRun if the call fails."""
    result = http.run(ToolCall(tool_id=tool_id, params=params))
    if not isinstance(result, ToolResult) or result.error is not None:
        raise CannotRun(
            f"The call of {tool_id} failed: {result.error.message if isinstance(result, ToolResult) and result.error else result}"
        )
    return result.result


def _show_call(http: ToolAgentHttp, console: Console, tool_id: str, params: dict[str, JsonValue]) -> None:
    console.print(f"  {tool_id}({json.dumps(params)}) = {json.dumps(call(http, tool_id, params))}", markup=False)


def _repository(folder: Path) -> Path:
    folder.mkdir()
    folder.parent.chmod(0o755)  # another user clones it, in the sandbox
    (folder / "app.py").write_text(_APP)
    (folder / "requirements.txt").write_text("fastapi\n")
    who = ("-c", "user.name=demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgSign=false")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "An app")):
        subprocess.run(("git", "-C", str(folder), *who, *words), check=True, capture_output=True)  # noqa: S607 - no shell, our words
    return folder
