"""Where the time of our Python goes, part by part: the running service is looked at a hundred times a second from outside."""

import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import psutil

from bench.environments import python_of
from bench.generator import Generator
from bench.load import Job, Measured
from bench.parts import RUST, SERVER, parts_of
from bench.processes import cpu_seconds
from bench.results import Profile
from bench.service import HARMLESS, LANES_OFF, OurService, call_body, make_catalog

_CALLERS = (16, 64)
_A_SECOND = 100
_NATIVE = ("tokio", "workflow-proc")
"""What Temporal's Rust calls its threads."""


class NoProfilerError(RuntimeError):
    """The profiler cannot be had, or may not look at our process."""


def measure_profile(generator: Generator, folder: Path, seconds: float, warm_up_s: float) -> list[Profile]:
    """Echo without lanes and with them, in turns. Raises NoProfilerError, WrongAnswersError."""
    data, profiler = make_catalog(folder / "profile-data"), _profiler()
    profiles: list[Profile] = []
    with ExitStack() as stack:
        services = {way: OurService(folder / f"profile-{way}", data, lanes) for way, lanes in (("off", LANES_OFF), ("harmless", HARMLESS))}
        for service in services.values():
            stack.callback(service.stop)
        for callers in _CALLERS:
            for way, service in services.items():
                job = Job(url=f"{service.url}/run_tool", body=call_body("echo"), expect='"success"', callers=callers, seconds=warm_up_s)
                generator.run(job)
                look = Look(service, profiler, folder / f"profile-{way}-{callers}.txt")
                measured = look.during(generator, job.model_copy(update={"seconds": seconds}))
                parts = {part: 1000 * used / measured.calls for part, used in look.used().items()}
                profiles.append(Profile(way=way, callers=callers, per_second=measured.per_second, ms=parts))
    return profiles


class Look:
    """At the service for the time of one job."""

    def __init__(self, service: OurService, profiler: Path, file: Path) -> None:
        self._python, self._server = psutil.Process(service.child.pid), service.parts()["temporal"]
        self._profiler, self._file = profiler, file

    def during(self, generator: Generator, job: Job) -> Measured:
        """Raises NoProfilerError, WrongAnswersError."""
        # Without stopping the process: with its many threads each look would take longer than a call.
        told = ["--nonblocking", "--threads", "--function", "--format", "raw", "--output", str(self._file)]
        command = [str(self._profiler), "record", "--pid", str(self._python.pid), "--rate", str(_A_SECOND), *told]
        self._before = self._now()
        with subprocess.Popen([*command, "--duration", f"{job.seconds:.0f}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as looking:
            measured = generator.run(job)
            said, _ = looking.communicate()
        self._after = self._now()
        if looking.returncode or not self._file.exists():
            raise NoProfilerError(said.decode(errors="replace").strip())
        return measured

    def used(self) -> Mapping[str, float]:
        """Seconds of CPU by part. What a Python thread has used is shared out as its stacks were seen."""
        by_thread = {thread: seconds - self._before[thread] for thread, seconds in self._after.items() if thread in self._before}
        native = {thread for thread in by_thread if thread > 0 and self._name(thread).startswith(_NATIVE)}
        python = {thread: seconds for thread, seconds in by_thread.items() if thread > 0 and thread not in native}
        parts = parts_of(self._file.read_text("utf-8", errors="replace").splitlines(), python)
        return {RUST: sum(by_thread[thread] for thread in native), **parts, SERVER: by_thread[_OF_SERVER]}

    def _now(self) -> dict[int, float]:
        threads = {thread.id: thread.user_time + thread.system_time for thread in self._python.threads()}
        return {**threads, _OF_SERVER: cpu_seconds(self._server)}

    def _name(self, thread: int) -> str:
        file = Path(f"/proc/{self._python.pid}/task/{thread}/comm")
        return file.read_text("utf-8") if file.exists() else ""


_OF_SERVER = -1


def _profiler() -> Path:
    try:
        return python_of("profiler").with_name("py-spy")
    except (subprocess.CalledProcessError, OSError) as error:
        raise NoProfilerError(f"py-spy could not be installed: {error}") from error
