"""`python -m tests.contracts.golden` writes the payloads of every contract, and the schemas, of this release.

Only the folder of the version in `packages/toolagent/pyproject.toml` is written; those of earlier releases stay.
"""

import json
import sys
import tomllib
from pathlib import Path

from pydantic import JsonValue

from tests.contracts.samples import Samples
from tests.contracts.wire import Schema, definitions, wire_contracts

__all__ = ["FOLDER", "SCHEMAS", "current", "read", "release", "write"]

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "golden"
SCHEMAS = "schemas.json"


def release() -> str:
    project = tomllib.loads((ROOT / "packages/toolagent/pyproject.toml").read_text("utf-8"))
    return project["project"]["version"]


def current() -> dict[str, JsonValue]:
    """By file name: for each contract its smallest and its fullest payload, and all schemas."""
    known = definitions()
    kinds = {"smallest": Samples(known, full=False), "fullest": Samples(known, full=True)}
    files: dict[str, JsonValue] = {
        f"{name}.json": {kind: samples.of(known[name]) for kind, samples in kinds.items()} for name in wire_contracts()
    }
    files[SCHEMAS] = {**known}
    return files


def read(folder: Path) -> tuple[dict[str, dict[str, JsonValue]], dict[str, Schema]]:
    """The payloads by contract and kind, and the schemas, of a release."""
    files = {path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    schemas = files.pop(SCHEMAS)
    return {name.removesuffix(".json"): payloads for name, payloads in files.items()}, schemas


def write() -> Path:
    folder = FOLDER / release()
    folder.mkdir(parents=True, exist_ok=True)
    files = current()
    for path in folder.glob("*.json"):
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=name == SCHEMAS) + "\n", "utf-8")
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"Written: {write().relative_to(ROOT)}\n")
