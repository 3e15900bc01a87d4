"""A catalog of isolated tools: a container, a server behind the proxy, scripts with packages."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from tests.system.service_process import ROOT

__all__ = ["ALLOWED", "greeting_file", "make_isolated_catalog", "tool_file"]

ALLOWED = "allowed.invalid"
"""The only host that `behind_the_proxy` may reach."""

_ANALYSER = """import json
print(json.dumps({"processed_items": 10, "report_url": "/reports/analyzer_123.html"}))
"""
"""A script that answers what the protocol of actions says."""

_NO_CACHES = shutil.ignore_patterns("__pycache__", ".venv")
_IS_ODD = '{"dependencies": {"is-odd": "3.0.1"}}'
_TOOLS: dict[str, tuple[dict[str, JsonValue], dict[str, JsonValue]]] = {
    "contained": (
        {"backend_runtime": "docker"},
        {"type": "docker", "host_dir": "projects/versatile", "dockerfile": "Dockerfile", "endpoint_path": "/run"},
    ),
    "behind_the_proxy": (
        {"backend_runtime": "local", "securityContext": {"networkAccess": {"allowHosts": [ALLOWED]}}},
        {"type": "local", "host_dir": "projects/versatile", "endpoint_path": "/run"},
    ),
}
_SCRIPTS: dict[str, tuple[str, dict[str, str]]] = {
    "odd-by-node": (
        "nodejs",
        {
            "main.mjs": 'import { readFileSync } from "node:fs";\nimport isOdd from "is-odd";\n'
            'console.log(JSON.stringify(isOdd(JSON.parse(readFileSync(0, "utf8")).n)));\n',
            "package.json": _IS_ODD,
        },
    ),
    "odd-by-bun": (
        "bun",
        {
            "main.ts": 'import isOdd from "is-odd";\nconst { n }: { n: number } = await Bun.stdin.json();\n'
            "console.log(JSON.stringify(isOdd(n)));\n",
            "package.json": _IS_ODD,
        },
    ),
    "ini-reader": (
        "python",
        {
            "main.py": '# /// script\n# requires-python = ">=3.11"\n# dependencies = ["iniconfig==2.0.0"]\n# ///\n'
            "import json, sys\nfrom iniconfig import IniConfig\n"
            'print(json.dumps(IniConfig("given", data=json.load(sys.stdin)["text"])["a"]["b"]))\n',
        },
    ),
    "greeter": ("python", {"main.py": 'import json, sys\nprint(json.dumps(json.load(sys.stdin)["greeting"]))\n'}),
}


def make_isolated_catalog(folder: Path) -> Path:
    """Write the catalog to `folder/data`, which is returned."""
    data = folder / "data"
    shutil.copytree(ROOT / "data/scripts", data / "scripts", ignore=_NO_CACHES)
    shutil.copytree(ROOT / "data/tools/core", data / "tools/core")
    shutil.copytree(ROOT / "tests/tool_projects/versatile", data / "projects/versatile", ignore=_NO_CACHES)
    tools: list[JsonValue] = [{"tool_id": tool_id, "name": tool_id, **manifest} for tool_id, (manifest, _) in _TOOLS.items()]
    sources: dict[str, JsonValue] = {tool_id: [source] for tool_id, (_, source) in _TOOLS.items()}
    (data / "registry.json").write_text(json.dumps({"version": "2.0", "tools": tools}), "utf-8")
    (data / "sources.json").write_text(json.dumps({"sources": sources}), "utf-8")
    for name, (language, files) in _SCRIPTS.items():
        _write(data / "tools" / name, {**files, f"{name}.tool.json": tool_file(name, language, next(iter(files)))})
    _write(data / "scripts/user_scripts/data_analysis", {"analyzer.py": _ANALYSER})
    return data


def greeting_file(data: Path) -> Path:
    """The file of `own:greeter`, for tests that edit it."""
    return data / "tools/greeter/greeter.tool.json"


def tool_file(name: str, language: str, script: str, greeting: str = "hello") -> str:
    """The file of the tool `own:NAME`; `greeting` is the default of its parameter of that name."""
    said = {
        "toolId": f"own:{name}",
        "displayName": name,
        "description": "One of the tests'.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": script, "language": language},
        "parameters": {"type": "object", "properties": {"greeting": {"type": "string", "default": greeting}}},
        "sideEffectScope": "none",
    }
    return json.dumps(said, indent=2)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
