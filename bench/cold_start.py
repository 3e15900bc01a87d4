"""A stopped tool's first answer, through us and with its server started by hand in the same environment."""

import contextlib
import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from pydantic import JsonValue

from bench.results import Single
from bench.service import HTTP_FREE, SHIPPED, OurService
from engine.network.ports import free_port

_LOOK_S = 0.002
_BOUND_S = 60.0
_TEXT: JsonValue = "A tool was stopped. Somebody calls it. It is started, and then it answers the call as if nothing had been."
_TOOLS: Mapping[str, tuple[str, Mapping[str, JsonValue]]] = {
    HTTP_FREE: ("/say", {"message": "hello"}),
    SHIPPED: ("/", {"text": _TEXT}),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the service starts a tool, read off the process that it has started; without the sandbox around it."""

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    port: int

    @classmethod
    def of(cls, process: psutil.Process, home: Path) -> "Recipe":
        # Without the owner's mark: what carries it is the service's, to be ended by it.
        environment = {name: value for name, value in process.environ().items() if not name.startswith("TOOL_AGENT_OWNER")}
        command = process.cmdline()
        return cls(tuple(command), process.cwd(), {**environment, "HOME": str(home)}, int(command[command.index("--port") + 1]))

    def on(self, port: int) -> tuple[list[str], dict[str, str]]:
        """Command and environment for another port."""
        old, new = str(self.port), str(port)
        return [new if part == old else part for part in self.command], {**self.environment, "PORT": new}


def measure_cold_starts(service: OurService, folder: Path, times: int) -> list[Single]:
    """Medians in seconds: `cold.ours.<tool>` and `cold.hand.<tool>`, taken in turns."""
    singles: list[Single] = []
    for tool_id, (path, params) in _TOOLS.items():
        # The environment is built by the first start, which does not count.
        service.start_tool(tool_id)
        recipe = Recipe.of(service.tool_processes(tool_id)[-1], folder)
        ours: list[float] = []
        by_hand: list[float] = []
        for _ in range(times):
            service.stop_tool(tool_id)
            begin = time.perf_counter()
            service.call(tool_id, **params)
            ours.append(time.perf_counter() - begin)
            by_hand.append(_by_hand(recipe, path, params, folder / "by-hand.log"))
        singles.append(Single(name=f"cold.ours.{tool_id}", label=f"cold start of {tool_id} through us", value=_ms(ours), unit="ms"))
        singles.append(Single(name=f"cold.hand.{tool_id}", label=f"cold start of {tool_id} by hand", value=_ms(by_hand), unit="ms"))
    return singles


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _by_hand(recipe: Recipe, path: str, params: Mapping[str, JsonValue], output: Path) -> float:
    port = free_port()
    command, environment = recipe.on(port)
    with output.open("ab") as log, httpx.Client(timeout=_BOUND_S, trust_env=False) as http:
        begin = time.perf_counter()
        server = subprocess.Popen(command, cwd=recipe.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while not _answers(http, f"http://127.0.0.1:{port}{path}", params):
                if time.perf_counter() - begin > _BOUND_S:
                    raise TimeoutError(f"{command} did not answer within {_BOUND_S:g} s")
                time.sleep(_LOOK_S)
            return time.perf_counter() - begin
        finally:
            server.kill()
            server.wait()


def _answers(http: httpx.Client, url: str, params: Mapping[str, JsonValue]) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return http.post(url, json=params).is_success
    return False
