"""The tools of the attacks: remote ones at the malicious peer, a script with selectable behaviour, and tools that are added later."""

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from tests.attacks.peer import PATHS
from tests.system.catalog import make_catalog
from tests.system.service_process import ROOT

__all__ = ["ACTING", "ATTACKER", "FILES", "attack_catalog", "docker_tools", "peer_tool", "put_tool"]

ATTACKER, ACTING, FILES = "attack:script", "attack:acting", "attack:files"
_PROJECT = ROOT / "tests/tool_projects/attacker/main.py"
_VERSATILE = ROOT / "tests/tool_projects/versatile"
_MODE: JsonValue = {"type": "object", "properties": {"mode": {"type": "string"}}, "required": ["mode"]}
_FILE: JsonValue = {"type": "object", "properties": {"file": {"type": "string", "format": "file-path"}}}


def attack_catalog(folder: Path, peer_url: str) -> Path:
    """Write the catalog of the system tests and the attacks' tools to `folder/data`, which is returned."""
    data = make_catalog(folder)
    registry, sources = (json.loads((data / name).read_text("utf-8")) for name in ("registry.json", "sources.json"))
    for path in PATHS:
        tool_id = peer_tool(path)
        more: JsonValue = {"side_effect_scope": "none", "timeout_s": 5}
        registry["tools"].append({"tool_id": tool_id, "name": tool_id, "backend_runtime": "remote", **more})
        sources["sources"][tool_id] = [{"type": "remote", "remote_url": peer_url, "endpoint_path": path, "health_path": path}]
    (data / "registry.json").write_text(json.dumps(registry), "utf-8")
    (data / "sources.json").write_text(json.dumps(sources), "utf-8")
    put_tool(data, ATTACKER, parameters=_MODE)
    put_tool(data, ACTING, parameters=_MODE, sideEffectScope="local_state", timeoutSeconds=6)
    put_tool(data, FILES, parameters=_MODE, output=_FILE)
    return data


@contextmanager
def docker_tools(data: Path, sources: Mapping[str, Mapping[str, JsonValue]], dockerfile: str = "") -> Generator[None]:
    """Docker tools of the versatile project, whose Dockerfile has these lines besides, are in the catalog during the block."""
    project = data / "projects/docker"
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(_VERSATILE, project, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
    with (project / "Dockerfile").open("a") as file:
        file.write(dockerfile)
    built: dict[str, JsonValue] = {"type": "docker", "dockerfile": "Dockerfile", "host_dir": "projects/docker", "endpoint_path": "/run"}
    before = {name: (data / name).read_text("utf-8") for name in ("sources.json", "registry.json")}
    changed = {name: json.loads(text) for name, text in before.items()}
    for tool_id, more in sources.items():
        changed["sources.json"]["sources"][tool_id] = [{**built, **more}]
        tool: JsonValue = {"tool_id": tool_id, "name": tool_id, "backend_runtime": "docker", "side_effect_scope": "none", "timeout_s": 25}
        changed["registry.json"]["tools"].append(tool)
    try:
        _replace(data, {name: json.dumps(document) for name, document in changed.items()})
        yield
    finally:
        _replace(data, before)


def _replace(data: Path, files: Mapping[str, str]) -> None:
    """Each tool is added in one step: a service may be reading the catalog."""
    for name, text in files.items():
        written = data / f"{name}.new"
        written.write_text(text, "utf-8")
        written.rename(data / name)


def peer_tool(path: str) -> str:
    return "peer" + path.replace("/", "_").replace("-", "_")


def put_tool(data: Path, tool_id: str, script: str = "", files: Mapping[str, str] | None = None, **more: JsonValue) -> Path:
    """Add a tool of the attacker's script, or of `script`, to the catalog in one step: a service may be reading it."""
    folder = data / "tools" / tool_id.replace(":", "-")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"main.py": script or _PROJECT.read_text("utf-8"), **(files or {})}.items():
        (folder / name).write_text(text, "utf-8")
    file: dict[str, JsonValue] = {
        "toolId": tool_id,
        "displayName": tool_id,
        "description": "A tool of the attacks.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "main.py", "language": "python"},
        "sideEffectScope": "none",
        "timeoutSeconds": 20,
    }
    written = folder / "new"
    written.write_text(json.dumps(file | more), "utf-8")
    return written.rename(folder / "attack.tool.json")
