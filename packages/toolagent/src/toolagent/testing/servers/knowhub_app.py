"""A stand-in of KnowHub as a web application: its resources at `/api/resource`. `/control` is ours."""

import asyncio
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolagent.testing.servers.told_faults import ToldFault, ToldFaults

__all__ = ["EXAMPLES", "FAULTS", "KnowHubApp", "KnowHubFault"]

FAULTS = ("404", "409", "500", "slow", "garbage", "meddle")
"""Answers with that status; no answer; one that is no JSON; somebody else changes the resource just before the request is carried out."""

EXAMPLES: tuple[dict[str, JsonValue], ...] = (
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
    """The next `times` requests by this method (any, where none is named) to a resource, or to the list, have it."""

    kind: Literal["404", "409", "500", "slow", "garbage", "meddle"]
    method: Literal["", "GET", "PATCH"] = ""


@dataclass
class KnowHubApp:
    """`key` is what it takes as a bearer token; empty: it wants none. `tagged`: resources have an ETag, and PATCH looks at `If-Match`."""

    resources: Iterable[dict[str, JsonValue]] = EXAMPLES
    key: str = ""
    tagged: bool = True
    faults: ToldFaults[KnowHubFault] = field(default_factory=lambda: ToldFaults(KnowHubFault))
    patches: list[str] = field(default_factory=list[str])
    """The ids of resources that were changed, in order."""

    def __post_init__(self) -> None:
        self._by_id: dict[str, dict[str, JsonValue]] = {str(one.get("id", at)): _copied(one) for at, one in enumerate(self.resources)}

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/api/resource", self._list, methods=["GET"]),
                Route("/api/resource/{resource_id:path}", self._one, methods=["GET", "PATCH"]),
                *self.faults.routes("/control/faults"),
            ]
        )

    def resource(self, resource_id: str) -> dict[str, JsonValue]:
        return _copied(self._by_id[resource_id])

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
            if self.tagged and wanted is not None and wanted != _tag(found):
                return _error(409)
            body: dict[str, dict[str, JsonValue]] = await request.json()
            self._change(resource_id, body.get("metadata", {}))
            self.patches.append(resource_id)
        return JSONResponse(found, headers={"ETag": _tag(found)} if self.tagged else {})

    async def _failed(self, request: Request, resource_id: str = "") -> Response | None:
        """None for a request that is to be carried out."""
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return _error(401)
        fault = self.faults.next(lambda one: one.method in {"", request.method})
        if fault is None:
            return None
        match fault.kind:
            case "meddle":
                if resource_id in self._by_id:
                    items = self.resource(resource_id)["metadata"]
                    named = items.get("toolhub_items") if isinstance(items, dict) else None
                    self._change(resource_id, {"toolhub_items": [*(named if isinstance(named, list) else []), {"meanwhile": "By others"}]})
                return None
            case "slow":
                await asyncio.Event().wait()
                return None
            case "garbage":
                return Response("<html><body>Bad gateway", media_type="text/html")
            case status:
                return _error(int(status))

    def _change(self, resource_id: str, metadata: dict[str, JsonValue]) -> None:
        before = self._by_id[resource_id].get("metadata")
        self._by_id[resource_id]["metadata"] = {**(before if isinstance(before, dict) else {}), **metadata}


def _copied(resource: dict[str, JsonValue]) -> dict[str, JsonValue]:
    copied: dict[str, JsonValue] = json.loads(json.dumps(resource))
    return copied


def _tag(resource: dict[str, JsonValue]) -> str:
    return f'"{hashlib.sha256(json.dumps(resource, sort_keys=True).encode()).hexdigest()[:16]}"'


def _error(status: int) -> Response:
    return JSONResponse({"error": f"answers {status}"}, status)
