"""Which of our files a call walks through, from `POST /run_tool` to its answer."""

import os
import signal
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.processes import until
from bench.service import ACTING, OurService, Tree, make_catalog

_TRACED = Path(__file__).with_name("traced.py")
_MESSAGE = "hello"
_TIMES = 3
_IDLE_S = 4.0
_WAIT_S = 20.0


def walked(tree: Tree, folder: Path) -> Mapping[str, tuple[str, ...]]:
    """By the kind of the call. What works too while nobody calls is left out, and what only the first call needs."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{tree.python}" "{_TRACED}" "{folder}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    service = OurService(folder / "service", make_catalog(folder / "data", root=tree.root), tree=Tree(tree.root, str(python)))
    try:
        calls: Mapping[str, Callable[[], object]] = {
            "a fast call": lambda: service.call("echo", message=_MESSAGE),
            "a queued local call": lambda: service.call(ACTING, message=_MESSAGE),
        }
        for call in calls.values():
            call()
        idle = _seen(service, folder, tree, lambda: time.sleep(_IDLE_S))
        return {name: tuple(sorted(_seen(service, folder, tree, call) - idle)) for name, call in calls.items()}
    finally:
        service.stop()


def _seen(service: OurService, folder: Path, tree: Tree, work: Callable[[], object]) -> set[str]:
    os.kill(service.child.pid, signal.SIGUSR1)
    time.sleep(0.5)
    for _ in range(_TIMES):
        work()
    listed = folder / "files"
    listed.unlink(missing_ok=True)
    os.kill(service.child.pid, signal.SIGUSR2)
    if not until(listed.exists, _WAIT_S):
        raise RuntimeError("The service did not say which files worked.")
    root = tree.root.resolve()
    paths = (Path(line) for line in listed.read_text().splitlines())
    return {path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root) and ".venv" not in path.parts}
