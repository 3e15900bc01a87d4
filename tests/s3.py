"""An S3 server as a process of its own."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from engine.network.ports import free_port
from engine.store.content.parts import S3Place
from tests.programs import Program
from tests.system.waiting import wait_until

__all__ = ["S3Server", "s3_server"]


@dataclass(frozen=True, slots=True)
class S3Server:
    """Its content is lost at its end."""

    endpoint: str
    process: subprocess.Popen[bytes]

    def make_bucket(self, name: str) -> S3Place:
        httpx.put(f"{self.endpoint}/{name}", trust_env=False).raise_for_status()
        return S3Place(name, "a key", "a secret", prefix="tool-agent/files", endpoint=self.endpoint)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def s3_server(folder: Path) -> Generator[S3Server]:
    """A running server; its output is in `folder/s3.log`."""
    endpoint = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log, Program(command, stdout=log, stderr=log) as process:
        server = S3Server(endpoint, process)
        try:
            wait_until(lambda: _answers(endpoint), "the S3 server answers", 60)
            yield server
        finally:
            server.kill()


def _answers(endpoint: str) -> bool:
    try:
        return httpx.get(f"{endpoint}/moto-api/", trust_env=False).is_success
    except httpx.HTTPError:
        return False
