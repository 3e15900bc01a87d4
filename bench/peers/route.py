"""The minimal front of the bare peers: routes that hand JSON to a function, on the fastest server that Python has."""

from collections.abc import Awaitable, Callable, Mapping

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.peers.echo import Body

Run = Callable[[Body], Awaitable[Body]]


async def serve(port: int, runs: Mapping[str, Run]) -> None:
    """`POST <path>` answers with what its function makes of the body; until we are told to end."""
    routes = [_route(path, run) for path, run in runs.items()]
    config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="warning", access_log=False, server_header=False)
    await uvicorn.Server(config).serve()


def _route(path: str, run: Run) -> Route:
    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(await run(await request.json()))

    return Route(path, answer, methods=["POST"])
