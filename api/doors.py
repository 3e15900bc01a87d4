"""How a handler gets at what is behind the front door."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.ports import Doors

__all__ = ["Behind"]


async def _doors_of(request: Request) -> Doors:
    # Async, though it waits for nothing: FastAPI runs other dependencies in a thread, which costs more than all they do.
    doors: Doors = request.app.state.doors
    return doors


Behind = Annotated[Doors, Depends(_doors_of)]
