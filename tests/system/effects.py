"""Folders where diligent tools leave a line for each effect.

They are granted to the tools, which are sandboxed.
"""

import json
import tempfile
from pathlib import Path

from pydantic import JsonValue

from tests.system.waiting import wait_until

__all__ = ["count_of", "grant_effects", "own_effects", "wait_for_effect"]

_EVERYBODY = 0o777
"""Tools are somebody else than the tests, where those are root."""


def grant_effects(folder: Path) -> JsonValue:
    """Make `folder/effects` for the tools of the catalog `folder/data`, and the policy that grants what their manifests ask for."""
    effects = folder / "effects"
    effects.mkdir()
    effects.chmod(_EVERYBODY)
    (folder / "policy.json").write_text(json.dumps({"write": [str(effects)]}), "utf-8")
    return {"fileAccess": {"allowWrite": [str(effects)]}}


def own_effects(catalog: Path) -> Path:
    """A new file for effects. The tools of the catalog can see its folder too."""
    folder = Path(tempfile.mkdtemp(dir=catalog.with_name("effects")))
    folder.chmod(_EVERYBODY)
    return folder / "effects"


def count_of(effects: Path, line: str = "effect") -> int:
    return effects.read_text("utf-8").splitlines().count(line) if effects.exists() else 0


def wait_for_effect(effects: Path, line: str = "effect") -> None:
    """Wait until the tool has begun; its environment may have to be built first."""
    wait_until(lambda: count_of(effects, line), f"the effect {line!r} in {effects}", 90.0)
