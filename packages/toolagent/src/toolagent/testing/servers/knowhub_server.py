"""A test server for KnowHub, over real HTTP on 127.0.0.1: resources at `/api/resource`, controls at `/control`."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Literal, get_args

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolagent.testing.servers.serving import ServerThread
from toolagent.testing.servers.told_faults import ToldFault, ToldFaults

__all__ = ["EXAMPLES", "FAULTS", "KnowHubFault", "KnowHubServer"]

_Resource = dict[str, JsonValue]
_Kind = Literal["404", "409", "500", "slow", "garbage", "meddle"]

FAULTS: tuple[str, ...] = get_args(_Kind)
"""An answer with that status; no answer; an answer that is not JSON; another client changes the resource just before the request."""

EXAMPLES: tuple[_Resource, ...] = (
    {
        "id": "tools/image/image_stitcher",
        "title": "Image stitcher",
        "description": "Joins several pictures into one, side by side or one above the other",
        "metadata": {"tool_slug": "image_stitcher", "status": "未接入", "toolhub_items": []},
    },
    {
        "id": "tools/image_gen/comfyui",
        "title": "ComfyUI",
        "description": "Node based generation of images by workflows",
        "metadata": {"tool_slug": "comfyui", "status": "未接入", "toolhub_items": []},
    },
    {
        "id": "tools/nlp/text_summarizer",
        "title": "Text summarizer",
        "description": "Sums a long text up",
        "metadata": {"tool_slug": "text_summarizer", "status": "测试中", "toolhub_items": [{"by_hand": "Set by a person"}]},
    },
    {"id": "articles/about", "title": "About KnowHub", "description": "No tool", "metadata": {}},
)


class KnowHubFault(ToldFault):
    """Happens to the next `times` requests with this method (empty: any) to a resource or to the list."""

    kind: _Kind
    method: Literal["", "GET", "PATCH"] = ""


class KnowHubServer(ServerThread):
    """`with KnowHubServer() as server:`, then set `TOOL_AGENT_KNOWHUB_URL` to `server.url`.

    Requests need `key` as a bearer token, unless it is empty. If `tagged`, resources have an ETag, and PATCH checks `If-Match`.
    """

    def __init__(
        self,
        port: int = 0,
        resources: Iterable[_Resource] = EXAMPLES,
        *,
        key: str = "",
        tagged: bool = True,
        faults: Iterable[KnowHubFault] = (),
    ) -> None:
        self._key, self._is_tagged = key, tagged
        self._faults = ToldFaults(KnowHubFault, faults)
        self.fail = self._faults.add
        self._patches: list[str] = []
        self._by_id = {str(one.get("id", at)): deepcopy(one) for at, one in enumerate(resources)}
        routes = [
            Route("/api/resource", self._list, methods=["GET"]),
            Route("/api/resource/{resource_id:path}", self._one, methods=["GET", "PATCH"]),
            *self._faults.routes("/control/faults"),
        ]
        super().__init__(Starlette(routes=routes), port)

    @property
    def patches(self) -> tuple[str, ...]:
        """The ids of resources that were changed over HTTP, in order."""
        return tuple(self._patches)

    def resource(self, resource_id: str) -> _Resource:
        """The current state. Raises KeyError."""
        return deepcopy(self._by_id[resource_id])

    async def _list(self, request: Request) -> Response:
        return await self._failed(request) or JSONResponse({"resources": [*self._by_id.values()]})

    async def _one(self, request: Request) -> Response:
        resource_id = str(request.path_params["resource_id"])
        if (failed := await self._failed(request, resource_id)) is not None:
            return failed
        found = self._by_id.get(resource_id)
        if found is None:
            return _error(404)
        if request.method == "PATCH":
            wanted = request.headers.get("if-match")
            if self._is_tagged and wanted is not None and wanted != _tag(found):
                return _error(409)
            body: dict[str, _Resource] = await request.json()
            self._change(resource_id, body.get("metadata", {}))
            self._patches.append(resource_id)
        return JSONResponse(found, headers={"ETag": _tag(found)} if self._is_tagged else {})

    async def _failed(self, request: Request, resource_id: str = "") -> Response | None:
        """The answer of a request that is not carried out, else None."""
        if self._key and request.headers.get("authorization") != f"Bearer {self._key}":
            return _error(401)
        fault = self._faults.next(lambda one: one.method in {"", request.method})
        match fault.kind if fault else None:
            case None:
                return None
            case "meddle":
                if resource_id in self._by_id:
                    items = _metadata(self._by_id[resource_id]).get("toolhub_items")
                    self._change(resource_id, {"toolhub_items": [*(items if isinstance(items, list) else []), {"meanwhile": "By others"}]})
                return None
            case "slow":
                await asyncio.Event().wait()
                return None
            case "garbage":
                return Response("<html><body>Bad gateway", media_type="text/html")
            case status:
                return _error(int(status))

    def _change(self, resource_id: str, metadata: _Resource) -> None:
        found = self._by_id[resource_id]
        found["metadata"] = {**_metadata(found), **metadata}


def _metadata(resource: _Resource) -> _Resource:
    found = resource.get("metadata")
    return found if isinstance(found, dict) else {}


def _tag(resource: _Resource) -> str:
    return f'"{hashlib.sha256(json.dumps(resource, sort_keys=True).encode()).hexdigest()[:16]}"'


def _error(status: int) -> Response:
    return JSONResponse({"error": f"answers {status}"}, status)
