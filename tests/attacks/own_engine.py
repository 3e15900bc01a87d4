"""A second Docker engine, which tests may end in any way: its own folder, socket and containerd, and no network."""

import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.attacks.attack import expect
from tests.docker.engines import IMAGE
from tests.machine import lacking
from tests.programs import Program
from tests.system.leftovers import is_alive
from tests.system.waiting import wait_until

__all__ = ["OwnEngine", "own_engine"]

_START_S = 60.0
_END_S = 30.0


class OwnEngine:
    """All its files are in `folder`, whose path must be short, because it holds sockets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def address(self) -> str:
        return f"unix://{self._folder}/engine.sock"

    def start(self) -> None:
        """Start the engine, also after a kill, and wait until it answers. Raises AssertionError."""
        folder = self._folder
        # Those that were killed leave their numbers: a stranger's by now, or of one that nobody has buried, which counts as running.
        self._kill("containerd")
        for left in (self._pid_file, folder / "run/containerd/containerd.pid"):
            left.unlink(missing_ok=True)
        places = ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/run", "--pidfile", str(self._pid_file), "--host", self.address]
        # An engine without a bridge removes `docker0`, which is that of the machine's: it gets a network of its own to do so.
        alone = [_program("unshare"), "--net", "--"]
        command = [*alone, _program("dockerd"), *places, "--bridge=none", "--iptables=false", "--ip6tables=false"]
        with (folder / "engine.log").open("ab") as log:
            child = Program(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def answers() -> bool:
            expect(child.poll() is None, f"the second engine does not start: {(folder / 'engine.log').read_text()[-300:]}")
            return self._docker("info").returncode == 0

        wait_until(answers, "the second engine answers", _START_S)

    def load(self, image: str) -> None:
        """Copy the image from this machine's engine: there is no registry."""
        archive = self._folder / "image.tar"
        saved = subprocess.run([_program("docker"), "save", "--output", archive, image], capture_output=True, check=False)
        loaded = self._docker("load", "--input", str(archive))
        archive.unlink(missing_ok=True)
        expect(loaded.returncode == 0, f"the second engine has no image: {(saved.stderr + loaded.stderr).decode()}")

    def send(self, number: signal.Signals) -> None:
        """End it with this signal, and wait for its end. Its children may stay."""
        pid = int(self._pid_file.read_text())
        os.kill(pid, number)
        wait_until(lambda: not is_alive(pid), "the second engine has ended", _END_S)

    def end(self) -> None:
        """Remove the engine, its containers and everything it started."""
        with suppress(AssertionError, OSError, ValueError):
            if self._docker("info").returncode != 0:
                self.start()
            if containers := self._docker("ps", "-aq").stdout.split():
                self._docker("rm", "-f", *map(bytes.decode, containers))
            self.send(signal.SIGTERM)
        self._kill("")
        for mount in sorted((one.mountpoint for one in psutil.disk_partitions(all=True)), reverse=True):
            if Path(mount).is_relative_to(self._folder):
                subprocess.run([_program("umount"), "-l", mount], check=False)

    @property
    def _pid_file(self) -> Path:
        return self._folder / "engine.pid"

    def _kill(self, name: str) -> None:
        """Kill its children of this name; without a name all: its containerd, and the shim of each container."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                command = process.cmdline()
                is_its = process.pid != os.getpid() and str(self._folder) in " ".join(command)
                if is_its and name in ("", Path(command[0]).name):
                    process.kill()
                    wait_until(lambda process=process: not is_alive(process.pid), f"{command[0]} has ended", _END_S)

    def _docker(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        command = [_program("docker"), "-H", self.address, *arguments]
        return subprocess.run(command, capture_output=True, timeout=_END_S, check=False)


@contextmanager
def own_engine(folder: Path) -> Generator[OwnEngine]:
    """An engine with our base image, removed after the block. Skips if none can be started."""
    folder.mkdir()
    engine = OwnEngine(folder)
    try:
        try:
            engine.start()
            engine.load(IMAGE)
        except AssertionError as error:
            lacking(str(error))
        yield engine
    finally:
        engine.end()


def _program(name: str) -> str:
    if os.geteuid() != 0 or (found := shutil.which(name)) is None:
        lacking(f"there is no {name} here, or we are not root")
    return found
