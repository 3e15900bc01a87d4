"""The Docker engine of this machine: calls its API in threads, each with a time limit, and translates failures."""

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Protocol, TypeVar, cast

import docker  # pyright: ignore[reportMissingTypeStubs] - it has none; `Api` says what is used of it
from docker import errors  # pyright: ignore[reportMissingTypeStubs] - as above
from requests import Response
from requests.exceptions import RequestException

T = TypeVar("T")
Document = dict[str, Any]
"""A JSON object of the engine's API (version 1.41 or newer)."""

_UNIX = "unix://"
_LOCAL = "unix:///var/run/docker.sock"
_THREADS = 16
_LONG_THREADS = 32
_TIMEOUT_S = 60.0
_MARGIN_S = 5.0
_NOT_FOUND = 404


class EngineFailure(Exception):
    """The engine did not do what was asked."""


class EngineUnavailable(EngineFailure):
    """There is no engine, or it does not answer."""


class EngineRefused(EngineFailure):
    """The engine refused; the message is the engine's."""


class Missing(EngineRefused):
    """The container, image or command does not exist."""


class Stream(Protocol):
    """A streamed answer. Closing it ends the wait for the next part."""

    def __iter__(self) -> Iterator[Document]: ...

    def close(self) -> None: ...


class Api(Protocol):
    """The methods of `docker.APIClient` in use. All block."""

    base_url: str

    @property
    def api_version(self) -> str: ...

    def ping(self) -> bool: ...
    def info(self) -> Document: ...
    def inspect_image(self, image: str) -> Document: ...
    def remove_image(self, image: str, force: bool = ...) -> object: ...
    def images(self, *, filters: Mapping[str, object]) -> list[Document]: ...
    def import_image_from_data(self, data: bytes, repository: str, tag: str, changes: list[str]) -> str: ...
    def pull(self, repository: str, *, stream: bool, decode: bool) -> Iterable[Document]: ...
    def post(
        self, url: str, *, data: BinaryIO, params: Mapping[str, str], headers: Mapping[str, str], stream: bool, timeout: float
    ) -> Response: ...
    def create_container_from_config(self, config: Document, name: str) -> Document: ...
    def start(self, container: str) -> None: ...
    def stop(self, container: str, timeout: int) -> None: ...
    def remove_container(self, container: str, v: bool = ..., force: bool = ...) -> None: ...
    def inspect_container(self, container: str) -> Document: ...
    def containers(self, *, all: bool, filters: Mapping[str, object]) -> list[Document]: ...
    def logs(self, container: str, *, stdout: bool, stderr: bool, tail: int | str) -> bytes: ...
    def commit(self, container: str, repository: str, tag: str, *, changes: list[str]) -> Document: ...
    def exec_create(self, container: str, cmd: list[str], **more: object) -> Document: ...
    def exec_start(self, exec_id: str, *, detach: bool = ..., socket: bool = ...) -> object: ...
    def exec_inspect(self, exec_id: str) -> Document: ...
    def events(self, *, since: int, filters: Mapping[str, object], decode: bool) -> Stream: ...


class Engine:
    """The engine at `DOCKER_HOST` of `environment`, else at the local socket. Close it with `close`."""

    def __init__(self, environment: Mapping[str, str] | None = None, timeout_s: float = _TIMEOUT_S) -> None:
        self._environment = dict(environment or {})
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, "docker")
        self._long = ThreadPoolExecutor(_LONG_THREADS, "docker at length")
        self._api: Api | None = None
        self._is_closed = False
        self._processors = 0

    async def ask(self, what: Callable[[Api], T], timeout_s: float | None = None) -> T:
        """Run `what` with the API in a thread. Raises EngineFailure. A cancelled request goes on until it ends by itself."""
        return await self._within(self._threads, what, timeout_s or self._timeout_s + _MARGIN_S)

    async def work(self, what: Callable[[Api], T], timeout_s: float) -> T:
        """Like `ask`, for builds, pulls and commands: they have threads of their own, so they never delay `ask`."""
        return await self._within(self._long, what, timeout_s)

    async def check(self) -> None:
        """Raises EngineUnavailable."""
        await self.ask(lambda api: api.ping())

    async def processors(self) -> int:
        """The number of processors of the engine's machine, asked once: no container may use more. Raises EngineFailure."""
        if not self._processors:
            self._processors = int((await self.ask(lambda api: api.info())).get("NCPU") or 1)
        return self._processors

    def close(self) -> None:
        self._is_closed = True
        for threads in (self._threads, self._long):
            threads.shutdown(wait=False, cancel_futures=True)
        api, self._api = self._api, None
        if api is not None:
            cast("docker.APIClient", api).close()

    async def _within(self, threads: ThreadPoolExecutor, what: Callable[[Api], T], timeout_s: float) -> T:
        if self._is_closed:
            raise EngineUnavailable("The connection to the Docker engine is closed: the service stops.")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                return await loop.run_in_executor(threads, self.in_this_thread, what)
        except TimeoutError:
            raise EngineUnavailable(f"The Docker engine did not answer within {timeout_s:g} s.") from None

    def in_this_thread(self, what: Callable[[Api], T]) -> T:
        """Like `ask`, for callers in a thread. Raises EngineFailure."""
        try:
            return what(self._connected())
        except errors.APIError as error:
            raise _refusal(error) from error
        except (errors.DockerException, RequestException, OSError) as error:
            self._api = None
            raise EngineUnavailable(f"There is no Docker engine that answers: {_innermost(error)}") from error

    def _connected(self) -> Api:
        if self._api is None:
            _knock(self._environment.get("DOCKER_HOST") or _LOCAL)
            client = docker.DockerClient.from_env(
                timeout=int(self._timeout_s), max_pool_size=_THREADS + _LONG_THREADS, environment=self._environment
            )
            self._api = cast("Api", client.api)
        return self._api


def reason_of(failure: BaseException) -> str:
    """The failure for public messages, without addresses, users and paths."""
    cause = _innermost(failure)
    told = cause.strerror if isinstance(cause, OSError) else None
    return f"no Docker engine answers{f' ({told})' if told else ''}."


def _knock(address: str) -> None:
    """Raises OSError if no engine listens: the library would leave its socket open."""
    if address.startswith(_UNIX):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(address.removeprefix(_UNIX))


def _refusal(error: "errors.APIError") -> EngineRefused:
    told = str(error.explanation or error)
    return Missing(told) if error.status_code == _NOT_FOUND else EngineRefused(told)


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return error
