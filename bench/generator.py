"""The handle on the load generator."""

import subprocess
import sys
from pathlib import Path

import psutil

from bench.load import Job, Measured
from bench.processes import bare_environment


class WrongAnswersError(RuntimeError):
    """Answers were not what they should be: what was measured is something else."""


class Generator:
    """The process that makes the load. Use as a context manager."""

    def __init__(self, root: Path) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "bench.load"],
            cwd=root,
            env=bare_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.processes = [psutil.Process(self._child.pid)]

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()

    def run(self, job: Job) -> Measured:
        """Raises WrongAnswersError with the first wrong answer."""
        if self._child.stdin is None or self._child.stdout is None:
            raise WrongAnswersError("the load generator has no pipes")
        self._child.stdin.write(job.model_dump_json() + "\n")
        self._child.stdin.flush()
        if not (said := self._child.stdout.readline()):
            raise WrongAnswersError(f"the load generator ended with code {self._child.wait()}")
        measured = Measured.model_validate_json(said)
        if measured.wrong or not measured.calls:
            raise WrongAnswersError(f"{job.url}: {measured.wrong} of {measured.calls} answers were wrong: {measured.first_wrong}")
        return measured
