"""How a handler gets at what is behind the front door."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.ports import Dependencies

__all__ = ["Injected"]


async def _dependencies_of(request: Request) -> Dependencies:
    # Async, though it waits for nothing: FastAPI runs other dependencies in a thread, which costs more than all they do.
    dependencies: Dependencies = request.app.state.dependencies
    return dependencies


Injected = Annotated[Dependencies, Depends(_dependencies_of)]
