"""Asks an app that was just started what it offers."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue

from engine.making.building.builds import Job
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.runtime import Runtime, ToolRequest
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource

LEFT_OUT = "x-left-out"
"""In the document of our launcher: operations that are none there, and why."""

OWN_DOCUMENT = "/.tool-agent/openapi.json"
"""Where our launchers say what an app offers, as far as that is known."""

PATHS = (
    "/openapi.json",
    "/schema/openapi.json",
    "/api/openapi.json",
    "/api/v1/openapi.json",
    "/swagger.json",
    "/api/swagger.json",
    "/api/v1/swagger.json",
    "/apispec_1.json",
    "/apispec.json",
    "/openapi/openapi.json",
    "/api-spec.json",
    "/api/openapi/",
    "/schema/",
    "/api/schema/",
    # Of our launcher, for apps that have none.
    OWN_DOCUMENT,
)
"""Where frameworks put it, in the order in which they are asked."""
OWN_HEALTH = "/-/health"
"""Where our launcher says that it serves, of apps that do not describe themselves."""

_CALL = "call-openapi-document"
_ASK_S = 30.0

S = TypeVar("S", LocalSource, DockerSource)


async def live_document(
    runtime: Runtime[S], source: S, job: Job, *, is_described_by_us: bool, paths: Sequence[str]
) -> OpenApiDocument | None:
    """What it says where frameworks say it; None where it says nothing of use. It has ended when this returns. Raises StartFailed.

    `is_described_by_us`: where it says nothing, our launcher says what its routes are, and that it is well.
    """
    manifest = ToolManifest(tool_id=job.about.tool_name, name=job.about.tool_name)
    request = ToolRequest(_CALL, {}, _ASK_S, job.place.work)
    # Which path tells that it is well is in the document, if anywhere.
    health = OWN_HEALTH if is_described_by_us else PATHS[0]
    running = await runtime.start(manifest, source.model_copy(update={"health_path": health}), job.progress)
    try:
        for path in paths:
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
