"""A package index of the test, over real HTTP, and the gate in front of it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from toolagent_service.contracts.dependency_policy import DependencyPolicy

SHIPPED = Path(__file__).parents[3] / "data" / "popular_packages.txt"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was uploaded `days` ago."""

    version: str
    days: float = 1000
    yanked: bool = False
    suffix: str = "-py3-none-any.whl"


@dataclass(slots=True)
class Index:
    """Serves the simple API. `dated`: with upload times; `json`: as JSON, otherwise as HTML whatever is accepted; `away`: answers with this
    status.
    """

    packages: dict[str, tuple[Upload, ...]] = field(default_factory=dict[str, tuple[Upload, ...]])
    dated: bool = True
    json: bool = True
    away: int = 0
    asked: list[str] = field(default_factory=list[str])
    credentials: list[str] = field(default_factory=list[str])
    address: str = ""

    async def page(self, request: Request) -> Response:
        name = request.path_params["name"]
        self.asked.append(name)
        self.credentials.append(request.headers.get("authorization", ""))
        if self.away:
            return Response(status_code=self.away)
        if name not in self.packages:
            return Response(status_code=404)
        if not self.json:
            return HTMLResponse("".join(self._link(name, upload) for upload in self.packages[name]))
        body = {"meta": {"api-version": "1.1"}, "name": name, "files": [self._file(name, upload) for upload in self.packages[name]]}
        return JSONResponse(body, media_type="application/vnd.pypi.simple.v1+json")

    def _file(self, name: str, upload: Upload) -> dict[str, object]:
        file: dict[str, object] = {"filename": _filename(name, upload), "url": "nowhere", "hashes": {}, "yanked": upload.yanked}
        if self.dated:
            file["upload-time"] = (NOW - timedelta(days=upload.days)).isoformat().replace("+00:00", "Z")
        return file

    def _link(self, name: str, upload: Upload) -> str:
        yanked = ' data-yanked=""' if upload.yanked else ""
        return f'<a href="../../files/{_filename(name, upload)}#sha256=00"{yanked}>a file</a><br/>\n'


def _filename(name: str, upload: Upload) -> str:
    return f"{name.replace('-', '_')}-{upload.version}{upload.suffix}"


@pytest_asyncio.fixture
async def index() -> AsyncGenerator[Index]:
    index = Index()
    app = Starlette(routes=[Route("/simple/{name}/", index.page)])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    with contextlib.closing(server.config.bind_socket()) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        index.address = f"http://127.0.0.1:{listening.getsockname()[1]}/simple"
        yield index
        server.should_exit = True
        await serving


@pytest.fixture(scope="session")
def popular() -> PopularPackages:
    return PopularPackages.read(SHIPPED)


Gate = Callable[..., DependencyGate]


@pytest_asyncio.fixture
async def gate(index: Index, popular: PopularPackages) -> AsyncGenerator[Gate]:
    """Makes gates with a policy, on this index or on others."""
    async with contextlib.AsyncExitStack() as stack:

        def make(addresses: tuple[str, ...] | None = None, clock: Callable[[], float] | None = None, **policy: object) -> DependencyGate:
            async def where() -> tuple[str, ...]:
                await asyncio.sleep(0)
                return addresses if addresses is not None else (index.address,)

            asked = SimpleIndex(where, clock=clock) if clock else SimpleIndex(where)
            stack.push_async_callback(asked.aclose)
            return DependencyGate(DependencyPolicy.model_validate(policy), asked, popular, lambda: NOW)

        yield make
