"""A catalog of the shipped tools and of small test tools: some leave effects, some are slow, some misbehave."""

import json
import shutil
from pathlib import Path

from pydantic import JsonValue

from tests.system.effects import grant_effects
from tests.system.service_process import ROOT

__all__ = ["make_catalog"]

_NO_CACHES = shutil.ignore_patterns("__pycache__", ".venv", ".pytest_cache")
_REPEATABLE: dict[str, JsonValue] = {"side_effect_scope": "none"}
_ACTING: dict[str, JsonValue] = {"side_effect_scope": "local_state", "idempotent": False}
_ACTING_AGAIN: dict[str, JsonValue] = {"side_effect_scope": "local_state", "idempotent": True}

# Allows every text, one of 14 times `a` after some milliseconds.
_BACKTRACKING: dict[str, JsonValue] = {"anyOf": [{"pattern": r"^(?!b)(a*)*c\1$"}, {"type": "string"}]}

# By tool id: the project it runs, and what its manifest says besides. `side_effect_scope: none` with a short time-out is the fast path.
_TOOLS: dict[str, tuple[str, dict[str, JsonValue]]] = {
    "once": ("diligent", _ACTING),
    "again": ("diligent", _ACTING_AGAIN),
    "crowded": ("diligent", _ACTING),
    "versatile": ("versatile", {**_REPEATABLE, "timeout_s": 20}),
    "quick": ("versatile", {**_REPEATABLE, "timeout_s": 2}),
    "typed": ("versatile", {**_REPEATABLE, "output_schema": {"type": "object", "required": ["answer"]}}),
    "hasty": ("versatile", {**_ACTING, "timeout_s": 1}),
    "thorough": ("versatile", {**_REPEATABLE, "input_schema": {"type": "object", "properties": {"texts": {"items": _BACKTRACKING}}}}),
    "mute": ("mute", _ACTING),
    "broken": ("broken", _ACTING),
}


def make_catalog(folder: Path, environments: Path | None = None) -> Path:
    """Write the catalog to `folder/data`, which is returned. The test tools may write to the folder of `own_effects`.

    Services on it share their environments; with a folder for these, they also share them with other catalogs. Each is built by the first
    tool that needs it.
    """
    write = grant_effects(folder)
    if environments is None:
        (folder / "environments").mkdir()
    else:
        (folder / "environments").symlink_to(environments)
    folder /= "data"
    shutil.copytree(ROOT / "data", folder, ignore=_NO_CACHES)
    for project in {project for project, _ in _TOOLS.values()}:
        shutil.copytree(ROOT / "tests/tool_projects" / project, folder / "projects" / project, ignore=_NO_CACHES)
    registry = json.loads((folder / "registry.json").read_text("utf-8"))
    sources = json.loads((folder / "sources.json").read_text("utf-8"))
    for tool_id, (project, more) in _TOOLS.items():
        tool: JsonValue = {
            "tool_id": tool_id,
            "name": tool_id,
            "backend_runtime": "local",
            "timeout_s": 60,
            "securityContext": write,
            **more,
        }
        registry["tools"].append(tool)
        sources["sources"][tool_id] = [{"type": "local", "host_dir": f"projects/{project}", "endpoint_path": "/run"}]
    (folder / "registry.json").write_text(json.dumps(registry), "utf-8")
    (folder / "sources.json").write_text(json.dumps(sources), "utf-8")
    return folder
