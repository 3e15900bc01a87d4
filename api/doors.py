"""How a handler gets at what is behind the front door."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from api.ports import Doors

__all__ = ["Behind"]


def _doors_of(request: Request) -> Doors:
    doors: Doors = request.app.state.doors
    return doors


Behind = Annotated[Doors, Depends(_doors_of)]
