"""The service is killed under load and started again: how soon it answers once it listens."""

import socket
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import httpx

from bench.generator import Generator, WrongAnswersError
from bench.load import Job
from bench.processes import NotReadyError, until
from bench.results import Single
from bench.service import HARMLESS, OurService, call_body, make_catalog
from engine.network.ports import free_port

_CALLERS = 16
_BEFORE_S, _LOAD_S = 1.5, 30.0
_LISTENS_S, _READY_S = 120.0, 120.0
_PAUSE_S = 0.005


def measure_kills(generator: Generator, folder: Path, times: int) -> list[Single]:
    """`killed.first`, the slowest first answer, from when the port takes connections; `killed.listens`, the longest until then."""
    settings = {**HARMLESS, "FASTAPI_PORT": str(free_port())}
    service = OurService(folder / "killed", make_catalog(folder / "killed-data"), settings)
    listens: list[float] = []
    first: list[float] = []
    try:
        for _ in range(times):
            _kill_under_load(generator, service)
            began = time.perf_counter()
            service.start_again()
            listening = _listening(service)
            listens.append(listening - began)
            first.append(_answered(service) - listening)
            service.child.ready(lambda: "ready" in service.child.output, _READY_S)
    finally:
        service.stop()
    return [
        Single(name="killed.listens", label="from the start after `kill -9` until it listens, the longest", value=max(listens), unit="s"),
        Single(name="killed.first", label="first answer after `kill -9`, from when it listens, the longest", value=max(first), unit="s"),
    ]


def _kill_under_load(generator: Generator, service: OurService) -> None:
    job = Job(url=f"{service.url}/run_tool", body=call_body("echo"), expect='"success"', callers=_CALLERS, seconds=_LOAD_S)

    def load() -> None:
        # It ends with the service.
        with suppress(WrongAnswersError):
            generator.run(job)

    callers = Thread(target=load)
    callers.start()
    time.sleep(_BEFORE_S)
    service.kill()
    callers.join()


def _listening(service: OurService) -> float:
    """When its port took a connection. Raises NotReadyError."""
    address = ("127.0.0.1", httpx.URL(service.url).port or 0)

    def look() -> bool:
        with suppress(OSError), socket.create_connection(address, timeout=1):
            return True
        return service.child.has_ended

    if not until(look, _LISTENS_S) or service.child.has_ended:
        raise NotReadyError(f"the service does not listen after it was killed: {service.child.output[-1000:]}")
    return time.perf_counter()


def _answered(service: OurService) -> float:
    """When a new call was answered well; what is not answered is asked again. Raises NotReadyError."""
    end = time.perf_counter() + _READY_S
    while time.perf_counter() < end:
        with suppress(httpx.TransportError):
            answer = service.http.post("/run_tool", content=call_body("echo"), headers={"Content-Type": "application/json"})
            if answer.is_success and answer.json()["status"] == "success":
                return time.perf_counter()
        time.sleep(_PAUSE_S)
    raise NotReadyError(f"the service did not answer within {_READY_S:g} s after it was killed")
