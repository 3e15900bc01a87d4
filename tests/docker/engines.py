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

__all__ = ["IMAGE", "ready_engine", "remove_images_of"]

ROOT = Path(__file__).parents[2]
IMAGE = "agent-sandbox:latest"


def ready_engine() -> None:
    """Skips where none can be had; never with CI=true."""
    for script in (".ci/engine", "deploy/sandbox-image/build"):
        made = subprocess.run(["/bin/bash", str(ROOT / script)], capture_output=True, text=True, timeout=300, check=False)
        if made.returncode != 0:
            lacking(f"{script} failed: {made.stdout}{made.stderr}")


def remove_images_of(folder: Path) -> None:
    """Those that were made for state directories below this folder, or for some that are gone. Without an engine there are none."""
    engine = Engine(timeout_s=20)
    with contextlib.suppress(EngineFailure):
        asyncio.run(sweep_gone(engine, Seals.of(folder)))
        for image in engine.in_this_thread(lambda api: api.images(filters={"label": PLACE})):
            origin = Origin.read(image["Labels"])
            if origin is not None and Path(origin.place).is_relative_to(folder):
                with contextlib.suppress(EngineRefused):  # with its last descendant it is gone already
                    engine.in_this_thread(lambda api, image=image: api.remove_image(image["Id"], force=True))
    engine.close()
