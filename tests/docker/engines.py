"""The engine and the base image, made the way `.ci/machine` makes them."""

import asyncio
import contextlib
import subprocess
from pathlib import Path

from engine.runtimes.docker_engine.engine import Engine, EngineFailure, EngineRefused
from engine.runtimes.docker_engine.labels import PLACE, Origin
from engine.runtimes.docker_engine.leftovers import sweep_gone
from engine.runtimes.docker_engine.seals import Seals
from tests.machine import lacking

__all__ = ["IMAGE", "VERSATILE", "ready_engine", "remove_images_of"]

ROOT = Path(__file__).parents[2]
IMAGE = "agent-sandbox:latest"
VERSATILE = "agent-sandbox:versatile"
"""Of the versatile tool; it stays on the machine, as the base image does."""


def ready_engine() -> None:
    """The engine; skips the test if there is none, except with CI=true."""
    scripts = [["/bin/bash", str(ROOT / script)] for script in (".ci/engine", "deploy/sandbox-image/build")]
    for command in (*scripts, ["docker", "build", "--quiet", "--tag", VERSATILE, str(ROOT / "tests/tool_projects/versatile")]):
        made = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if made.returncode != 0:
            lacking(f"{' '.join(command)} failed: {made.stdout}{made.stderr}")


def remove_images_of(folder: Path) -> None:
    """Remove images made for state directories below this folder, or for ones that are gone. Does nothing without an engine."""
    engine = Engine(timeout_s=20)
    with contextlib.suppress(EngineFailure):
        asyncio.run(sweep_gone(engine, Seals.of(folder)))
        for image in engine.in_this_thread(lambda api: api.images(filters={"label": PLACE})):
            origin = Origin.read(image["Labels"])
            if origin is not None and Path(origin.place).is_relative_to(folder):
                with contextlib.suppress(EngineRefused):  # with its last descendant it is gone already
                    engine.in_this_thread(lambda api, image=image: api.remove_image(image["Id"], force=True))
    engine.close()
