"""Faults that a test server is told to have; each occurrence uses one up."""

from collections.abc import Callable, Iterable
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

__all__ = ["ToldFault", "ToldFaults"]


class ToldFault(BaseModel):
    """Happens `times` times."""

    model_config = ConfigDict(extra="forbid")

    times: Annotated[int, Field(ge=1)] = 1

    def spares(self) -> bool:
        """Whether the fault does not happen this time."""
        return False


F = TypeVar("F", bound=ToldFault)


class ToldFaults(Generic[F]):
    """The faults that have not happened yet."""

    def __init__(self, kind: type[F], faults: Iterable[F] = ()) -> None:
        self._kind, self._left = kind, [one.model_copy() for one in faults]

    def add(self, fault: F) -> None:
        """Have this fault from now on."""
        self._left.append(fault.model_copy())

    def next(self, hits: Callable[[F], bool]) -> F | None:
        """The first fault that hits, used up once."""
        for fault in [one for one in self._left if hits(one)]:
            if not fault.spares():
                fault.times -= 1
                if not fault.times:
                    self._left.remove(fault)
                return fault
        return None

    def routes(self, path: str) -> list[Route]:
        """POST adds a fault, DELETE forgets all."""
        return [Route(path, self._post, methods=["POST"]), Route(path, self._delete, methods=["DELETE"])]

    async def _post(self, request: Request) -> Response:
        try:
            self.add(self._kind.model_validate_json(await request.body()))
        except ValidationError as error:
            return JSONResponse({"error": str(error)}, 400)
        return Response(status_code=204)

    async def _delete(self, _: Request) -> Response:
        self._left.clear()
        return Response(status_code=204)
