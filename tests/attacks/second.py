"""A second service beside the attacked one, which is expected not to start."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.attacks.attack import broken, expect
from tests.system.leftovers import processes_of
from tests.system.loaded import start_workers
from tests.system.service_process import child_environment
from tests.system.waiting import wait_until

__all__ = ["refused_start"]

_SOON_S = 60.0


def refused_start(folder: Path, data: Path, settings: Mapping[str, str]) -> str:
    """Its output when it exits by itself, with an error and without a traceback; nothing of it is left."""
    own, log = folder / "state", folder / "output.log"
    # A file: what it has started would hold a pipe open.
    with log.open("wb") as output:
        child = start_workers(["up"], folder, child_environment(own, data, settings), output, output)
    try:
        code = child.wait(_SOON_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        broken(f"a start with {', '.join(settings)} does not end: {log.read_text('utf-8', 'replace')[-300:]}")
    finally:
        with suppress(AssertionError):
            wait_until(lambda: not processes_of(own), "nothing is left of the second one", 20.0)
        left = processes_of(own)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    said = log.read_text("utf-8", "replace")
    expect(code != 0, "it ended well")
    expect("Traceback" not in said, f"a traceback: {said[-300:]}")
    expect(not left, f"it left {len(left)} processes")
    return " ".join(said.split())
