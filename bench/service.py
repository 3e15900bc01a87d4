"""Our service as users run it: `python -m workers up` on a state directory, a catalog of its own and free ports."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from pydantic import JsonValue

from bench.processes import Child, NotReadyError, until
from toolagent.contracts.http import Problem
from toolagent.contracts.lanes import Lane, LaneFigures, LaneListing
from toolagent.contracts.routes import ToolRoute

ROOT = Path(__file__).resolve().parents[1]
ACTING = "bench_acting"
AGAIN = "bench_again"
HTTP_FREE = "bench_free"
GROUP = "bench_group"
_LAUNCH, _STOP = "bench_launch", "bench_stop"
SHIPPED = "text_summarizer_api"
CONTAINER = "bench_container"
SCRIPT = "bench_script"
SCRIPT_ACTING = "bench_script_acting"
SCRIPT_FILE = ROOT / "data/scripts/examples/echo.py"
LANES_OFF, HARMLESS, LANES_ALL = ({"LANES": mode} for mode in ("off", "harmless", "all"))
LANE_WAY = '"way":"lane"'
"""In the answer of a call that took the lane."""

_ADDRESS = re.compile(r"^(API|Temporal UI|Temporal) +(\S+)", re.MULTILINE)
_START_S = 600.0
_FIGURES_S = 30.0
_CALM_S, _CALM_PERCENT = 2.0, 15.0
"""So long it uses less than this of a processor."""

_MAIN = "main.py"
_NO_CACHES = shutil.ignore_patterns("__pycache__", ".venv", ".pytest_cache")
_SCHEMA: JsonValue = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
_TOOLS: dict[str, tuple[str, dict[str, JsonValue]]] = {
    ACTING: ("/note", {"side_effect_scope": "local_state", "idempotent": False, "timeout_s": 30}),
    AGAIN: ("/note", {"side_effect_scope": "local_state", "idempotent": True, "timeout_s": 30}),
    HTTP_FREE: ("/say", {"side_effect_scope": "none", "timeout_s": 2}),
    **{tool_id: ("/say", {"side_effect_scope": "none", "timeout_s": 30}) for tool_id in (_LAUNCH, _STOP)},
}
_ECHO: dict[str, JsonValue] = {"type": "script", "script_path": "examples/echo.py", "language": "python"}
_OTHER_TOOLS: dict[str, tuple[dict[str, JsonValue], dict[str, JsonValue]]] = {
    CONTAINER: (
        {"type": "docker", "host_dir": "bench_tool", "dockerfile": "Dockerfile", "endpoint_path": "/say"},
        {"backend_runtime": "docker", "side_effect_scope": "none", "timeout_s": 30},
    ),
    SCRIPT: (_ECHO, {"backend_runtime": "local", "side_effect_scope": "none", "timeout_s": 2}),
    SCRIPT_ACTING: (_ECHO, {"backend_runtime": "local", "side_effect_scope": "local_state", "timeout_s": 30}),
}
_GROUP: dict[str, JsonValue] = {
    "group_id": GROUP,
    "name": "Sessions of the bench",
    # None that is measured by itself: what has a role in a group takes no lane.
    "tool_ids": [_LAUNCH, "calculator", _STOP],
    "lifecycle": True,
    "steps": [
        {"tool_id": _LAUNCH, "role": "launch"},
        {"tool_id": "calculator", "role": "run"},
        {"tool_id": _STOP, "role": "stop", "params": {"message": "stop"}},
    ],
    "limits": {"idle_timeout_s": None, "total_timeout_s": None},
}


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree of our sources and the Python with what it depends on: this one, or another commit's."""

    root: Path = ROOT
    python: str = sys.executable


THIS_TREE = Tree()


def make_catalog(
    folder: Path,
    more: int = 0,
    writes: Path | None = None,
    root: Path = ROOT,
    limits: Mapping[str, Mapping[str, JsonValue]] | None = None,
    tools: Mapping[str, tuple[dict[str, JsonValue], dict[str, JsonValue]]] | None = None,
) -> Path:
    """The shipped catalog of the tree and the tools of this bench, and `more` entries that nobody calls. Returns the folder.

    `writes` is a folder that the tools of the bench ask to write to; without it they have their own. `limits` are of groups, by their ids.
    `tools` are further ones by their ids, each with its source and what its manifest has besides.
    """
    shutil.copytree(root / "data", folder, ignore=_NO_CACHES)
    shutil.copytree(ROOT / "bench/tool", folder / "bench_tool", ignore=_NO_CACHES)
    registry = json.loads((folder / "registry.json").read_text("utf-8"))
    sources = json.loads((folder / "sources.json").read_text("utf-8"))
    for tool_id, (path, manifest) in _TOOLS.items():
        entry: dict[str, JsonValue] = {"tool_id": tool_id, "name": tool_id, "backend_runtime": "local", "input_schema": _SCHEMA}
        if writes is not None:
            entry["securityContext"] = {"fileAccess": {"allowWrite": [str(writes)]}}
        registry["tools"].append(entry | manifest)
        sources["sources"][tool_id] = [{"type": "local", "host_dir": "bench_tool", "endpoint_path": path}]
    for tool_id, (source, manifest) in {**_OTHER_TOOLS, **(tools or {})}.items():
        registry["tools"].append({"tool_id": tool_id, "name": tool_id, "input_schema": _SCHEMA} | manifest)
        sources["sources"][tool_id] = [source]
    for number in range(more):
        tool_id = f"filler_{number:05}"
        registry["tools"].append(
            {
                "tool_id": tool_id,
                "name": f"Filler {number}",
                "description": f"The {number}th of many tools; converts, reads or writes something.",
                "category": "filler",
                "backend_runtime": "remote",
                "tags": ["filler", f"tag-{number % 97}"],
                "input_schema": _SCHEMA,
            }
        )
        sources["sources"][tool_id] = [{"type": "remote", "base_url": f"http://tools.invalid/{number}"}]
    groups = json.loads((folder / "groups.json").read_text("utf-8"))
    groups["groups"].append(_GROUP)
    for group in groups["groups"]:
        group.setdefault("limits", {}).update((limits or {}).get(group["group_id"], {}))
    (folder / "groups.json").write_text(json.dumps(groups), "utf-8")
    (folder / "registry.json").write_text(json.dumps(registry), "utf-8")
    (folder / "sources.json").write_text(json.dumps(sources), "utf-8")
    return folder


def python_path(root: Path = ROOT) -> str:
    """The tree's own packages, whatever tree the environment was made for."""
    return os.pathsep.join((str(root), str(root / "packages/toolagent/src"), str(root / "packages/service/src")))


def call_body(tool_id: str, **params: JsonValue) -> str:
    """Of `POST /run_tool`."""
    return json.dumps({"tool_id": tool_id, "params": {"message": "hello", **params}})


def why_refused(error: httpx.HTTPStatusError) -> str:
    """What the service says of a request that it did not serve."""
    return Problem.model_validate_json(error.response.content).detail


class OurService:
    """Started and found healthy by its constructor, with `settings` by their names without prefix. `stop` is Ctrl-C."""

    def __init__(self, folder: Path, data: Path, settings: Mapping[str, str] | None = None, tree: Tree = THIS_TREE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        all_settings = {"FASTAPI_PORT": "0", "TEMPORAL_PORT": "0", "TEMPORAL_UI_PORT": "0", "DATA_DIR": str(data), **(settings or {})}
        all_settings |= {"STATE_DIR": str(folder / "state"), "TEMPORAL_CONFIG": str(tree.root / "temporal-dev.yaml")}
        more = {"PYTHONPATH": python_path(tree.root), "COLUMNS": "300"} | {
            f"TOOL_AGENT_{key}": value for key, value in all_settings.items()
        }
        self.state = folder / "state"
        self._folder, self._command, self._environment = folder, [tree.python, "-m", "workers", "up"], more
        self.child = self._started()
        try:
            self.child.ready(lambda: "ready" in self.child.output, _START_S)
        except RuntimeError:
            self.child.stop()
            raise
        addresses = dict(_ADDRESS.findall(self.child.output))
        self.url, self.temporal = addresses["API"], addresses["Temporal"]
        self.http = httpx.Client(base_url=self.url, timeout=900, trust_env=False)

    def stop(self) -> None:
        self.http.close()
        self.child.stop()

    def kill(self) -> None:
        """SIGKILL to the process of the service alone; its guardian sees to the others."""
        self.child.kill()

    def start_again(self) -> None:
        """After `kill`, without waiting until it is ready: on the same port only where it was given one."""
        self.child = self._started()

    def rest(self) -> None:
        """Wait until it does nothing but wait: after its start it looks through what it knows. Raises NotReadyError."""
        process = psutil.Process(self.child.pid)
        process.cpu_percent()

        def is_calm() -> bool:
            time.sleep(_CALM_S)
            return process.cpu_percent() < _CALM_PERCENT

        if not until(is_calm, _START_S):
            raise NotReadyError(f"the service did not come to rest within {_START_S:g} s")

    def call(self, tool_id: str, **params: JsonValue) -> JsonValue:
        """The result of a call that has to succeed."""
        answer = self.http.post("/run_tool", json={"tool_id": tool_id, "params": params})
        answer.raise_for_status()
        return answer.json()["result"]

    @property
    def has_sessions(self) -> bool:
        return self.http.get(f"/groups/{GROUP}/sessions").is_success

    @property
    def has_chats(self) -> bool:
        return self.http.get("/chats").is_success

    def open_sessions(self, number: int) -> tuple[str, ...]:
        """Their ids."""
        path, body = f"/groups/{GROUP}/sessions", {"params": {"message": "launch"}}
        views = [self.http.post(path, json=body).raise_for_status().json() for _ in range(number)]
        return tuple(view["session_id"] for view in views)

    def start_tool(self, tool_id: str) -> None:
        self.http.post(f"/tools/{tool_id}/start").raise_for_status()

    def stop_tool(self, tool_id: str) -> None:
        self.http.post(f"/tools/{tool_id}/stop").raise_for_status()

    def remove_tool(self, tool_id: str) -> None:
        self.http.delete(f"/tools/{tool_id}").raise_for_status()

    def lane_figures(self) -> LaneFigures:
        """Of its lane, no older than this question: they are told with each renewal of its lease. Raises NotReadyError."""
        asked = self._lane().seen_at
        if not until(lambda: self._lane().seen_at > asked, _FIGURES_S):
            raise NotReadyError(f"the lane was not seen for {_FIGURES_S:g} s")
        return self._lane().figures

    def tool_processes(self, tool_id: str) -> list[psutil.Process]:
        """Its sandbox, and what runs in it: what carries its connections, and the tool itself, which is the last."""
        sandbox = psutil.Process(self._route(tool_id).pid)
        inside = sandbox.children(recursive=True)
        tool = next(process for process in inside if process.cmdline()[1:2] == [_MAIN])
        return [sandbox, *(process for process in inside if process != tool), tool]

    def parts(self) -> dict[str, list[psutil.Process]]:
        """The processes by what they are: `python` (the service), `temporal`, `tools` and the rest."""
        parts: dict[str, list[psutil.Process]] = {"python": [], "temporal": [], "tools": []}
        for process in self.child.tree():
            command = " ".join(process.cmdline())
            kind = "python" if process.pid == self.child.pid else "temporal" if "start-dev" in command else "tools"
            parts[kind].append(process)
        return parts

    def _lane(self) -> Lane:
        answer = self.http.get("/lanes").raise_for_status()
        return max(LaneListing.model_validate_json(answer.content).lanes, key=lambda lane: lane.started_at)

    def _started(self) -> Child:
        return Child(self._command, self._folder, "service", self._environment)

    def _route(self, tool_id: str) -> ToolRoute:
        answer = self.http.get(f"/tools/{tool_id}")
        answer.raise_for_status()
        return ToolRoute.model_validate(answer.json()["route"])
