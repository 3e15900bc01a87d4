"""The engine and the base image, made the way `.ci/machine` makes them."""

import os
import subprocess
from pathlib import Path

import pytest

__all__ = ["IMAGE", "ready_engine"]

ROOT = Path(__file__).parents[2]
IMAGE = "agent-sandbox:latest"


def ready_engine() -> None:
    """Skips where none can be had; never with CI=true."""
    for script in (".ci/engine", "deploy/sandbox-image/build"):
        made = subprocess.run(["/bin/bash", str(ROOT / script)], capture_output=True, text=True, timeout=300, check=False)
        if made.returncode != 0:
            said = f"{script} failed: {made.stdout}{made.stderr}"
            if os.environ.get("CI") == "true":  # noqa: TID251 - the only question tests put to it
                pytest.fail(said)
            pytest.skip(said)
