"""Which tests each process of pytest runs, and how such a process begins."""

import shlex
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL

from xdist.scheduler import LoadFileScheduling

from tests.copying import listening
from tests.programs import Program
from workers.settings.environment import environment

__all__ = ["WITH_THE_SHARED_SERVICE", "Files", "collected", "file_of"]

_ROOT = Path(__file__).parents[1]

WITH_THE_SHARED_SERVICE = frozenset(
    f"tests/system/test_{name}.py"
    for name in (
        "agent_chat",
        "bad_tools",
        "callbacks",
        "command_line",
        "examples",
        "idempotency",
        "large_results",
        "loaded",
        "local_tools",
        "refusals",
        "scripts",
        "shipped_tools",
        "temporal_ui",
        "the_loop",
    )
)
"""Files whose tests use the service of `tests/system/conftest.py`: they go to one process, as each would start its own."""


class Files(LoadFileScheduling):
    """A process gets the tests of one file, or of the files that share a service."""

    def _split_scope(self, nodeid: str) -> str:
        file = file_of(nodeid)
        return "the shared service" if file in WITH_THE_SHARED_SERVICE else file


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@contextmanager
def collected(places: Sequence[str], folder: Path) -> Generator[str]:
    """A command, for xdist, of a pytest process that has imported the tests of these places, relative to this folder."""
    command = [sys.executable, "-m", "tests.collected", *places]
    variables = {**environment(), "PYTHONPATH": str(_ROOT)}
    with listening() as (address, listener), Program(command, cwd=folder, env=variables, stdin=listener, stdout=DEVNULL) as program:
        listener.close()
        try:
            # Xdist splits it as a shell does, and folders may have a space in their names.
            yield shlex.join([sys.executable, "-P", "-S", str(_ROOT / "tests/copying.py"), address])
        finally:
            program.terminate()
