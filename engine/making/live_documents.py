"""Asks an app that was just started what it offers."""

from typing import TypeVar

from pydantic import JsonValue

from engine.making.openapi.document import DocumentRefused, OpenApiDocument
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.runtime import Progress, Runtime, ToolRequest
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource

__all__ = ["live_document"]

_PATHS = ("/openapi.json", "/schema/openapi.json", "/api/openapi.json", "/api/v1/openapi.json")

S = TypeVar("S", LocalSource, DockerSource)


async def live_document(
    runtime: Runtime[S], manifest: ToolManifest, source: S, request: ToolRequest, progress: Progress
) -> OpenApiDocument | None:
    """What it says where frameworks say it; None where it says nothing of use. It has ended when this returns. Raises StartFailed.

    `request` is an empty one, whose id and folder are used.
    """
    # Which path tells that it is well is in the document, if anywhere.
    running = await runtime.start(manifest, source.model_copy(update={"health_path": _PATHS[0]}), progress)
    try:
        for path in _PATHS:
            asking = source.model_copy(update={"endpoint_path": path, "http_method": "GET"})
            try:
                said = await runtime.call(running, asking, request)
            except RuntimeFailure:
                continue
            if (found := _document(said)) is not None:
                return found
        return None
    finally:
        await runtime.stop(running)


def _document(said: JsonValue) -> OpenApiDocument | None:
    try:
        # Of its servers none counts: it is served here, at its own paths.
        return OpenApiDocument.of({**said, "servers": []}) if isinstance(said, dict) else None
    except DocumentRefused:
        return None
