"""A Temporal server outside of the service, which a test may kill, halt and restart."""

import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from engine.network.ports import free_port
from tests.programs import Program
from tests.system.service_process import ROOT
from workers.temporal.dev_server import read_config, server_command, temporal_binary

__all__ = ["TemporalServer"]

_END_S = 30


class TemporalServer:
    """Keeps its state in a file of `folder`. Its dynamic configuration is that of the embedded server, unless another one is given."""

    def __init__(self, folder: Path, dynamic_config: Mapping[str, JsonValue] | None = None) -> None:
        config = read_config(ROOT / "temporal-dev.yaml")
        if dynamic_config is not None:
            config = config.model_copy(update={"dynamic_config": dict(dynamic_config)})
        self.port = free_port()
        self._log = folder / "server.log"
        self._command = server_command(temporal_binary(), config, folder, self.port, free_port())
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._child = Program(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait(_END_S)
            self._child = None

    def halt(self) -> None:
        """Stop answering, with connections left open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    @contextmanager
    def halted(self) -> Generator[None]:
        self.halt()
        try:
            yield
        finally:
            self.resume()

    def _signal(self, number: signal.Signals) -> None:
        assert self._child is not None, "It does not run."
        self._child.send_signal(number)
