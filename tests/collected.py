"""A process that has imported some tests, and is copied for each process of pytest that xdist starts.

`python -m tests.collected PLACES`. Importing takes eight seconds of processor time, once for all.
"""

import gc
import socket
import sys
from types import ModuleType
from typing import NoReturn

import pytest

# Nothing else of ours: pytest rewrites the assertions of plugins, and says so when one of them is there already.
from tests.copying import serve


class _ModulesAlone:
    """Imports the modules only; the copies collect the tests in them."""

    are_whole = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.are_whole = self.are_whole and report.passed

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self) -> list[pytest.Item]:
        return []


def _run() -> NoReturn:
    listener = socket.socket(fileno=0).dup()
    modules = _ModulesAlone()
    code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[modules])
    if code != pytest.ExitCode.NO_TESTS_COLLECTED or not modules.are_whole:
        # pytest leaves what could not be imported among the modules, half made: the copies import all tests anew, and say why they cannot.
        for name in [name for name in sys.modules if name.startswith("tests.")]:
            del sys.modules[name]
    gc.disable()
    gc.freeze()
    serve(listener)
    sys.argv = ["-c"]
    sys.modules["__main__"] = main = ModuleType("__main__")
    exec(eval(sys.stdin.readline()), main.__dict__)  # noqa: S102, S307 - as xdist has a process do
    sys.exit()


if __name__ == "__main__":
    _run()
