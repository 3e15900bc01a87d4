"""Reads the OpenAPI document of an app that was just started, or tells why the app did not start."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from engine.making.building.builds import Job
from engine.making.failures import BuildFailed
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.runtimes.failures import RuntimeFailure, StartFailed
from engine.runtimes.runtime import Runtime, ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource

LEFT_OUT = "x-left-out"
"""Key in the document of our launcher: operations that it leaves out, and why."""

OWN_DOCUMENT = "/.tool-agent/openapi.json"
"""Where our launchers serve the document that they write for an app."""

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
    # Our launcher's, for apps that have none.
    OWN_DOCUMENT,
)
"""Where frameworks put their documents, in the order of asking."""
OWN_HEALTH = "/-/health"
"""The health path of our launcher, for apps that do not describe themselves."""

_LAST = 300
_LOGS = frozenset({"stderr", "log"})
"""Details in which runtimes put a program's output."""
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"(\w+\.)*\w*(Error|Exception|Invalid)(:|$)")
_CALL = "call-openapi-document"
_ASK_S = 30.0

S = TypeVar("S", LocalSource, DockerSource)


async def live_document(
    runtime: Runtime[S], source: S, job: Job, *, is_described_by_us: bool, paths: Sequence[str]
) -> OpenApiDocument | None:
    """The first usable document of the app at `paths`, or None. Starts the app and stops it again. Raises StartFailed.

    `is_described_by_us`: our launcher serves a document and a health path if the app has none.
    """
    manifest = ToolManifest(tool_id=job.about.tool_name, name=job.about.tool_name)
    request = ToolRequest(_CALL, {}, _ASK_S, job.place.work)
    # The app's own health path is not known before its document is.
    health = OWN_HEALTH if is_described_by_us else PATHS[0]
    running = await runtime.start(manifest, source.model_copy(update={"health_path": health}), job.progress)
    try:
        for path in paths:
            asking = source.model_copy(update={"endpoint_path": path, "http_method": "GET"})
            with suppress(RuntimeFailure, DocumentRefused):
                if isinstance(said := await runtime.call(running, asking, request), dict):
                    # It is served here, at its own paths, whatever servers it names.
                    return OpenApiDocument.of({**said, "servers": []})
        return None
    finally:
        await runtime.stop(running)


def not_started(failure: StartFailed, hint: str) -> BuildFailed:
    is_mute = "last_answer" in failure.details
    logs = (failure.details.get(name) for name in _LOGS) if failure.details.keys() & _LOGS else failure.details.values()
    told = "\n".join(value for value in logs if isinstance(value, str) and value)
    if failure.error_type is not ErrorType.UNAVAILABLE:
        # There is no image or environment to start.
        return BuildFailed(failure.message, told)
    # The last line tells why a program ended; an exception it raised goes before other lines.
    lines = [line.strip() for line in told.rpartition(_TRACEBACK)[2].splitlines() if line.strip()]
    raised = (line for line in reversed(lines) if _TRACEBACK in told and _RAISED.match(line))
    last = next(raised, lines[-1] if lines else "")[:_LAST]
    words = f" It said last: {last}" if last and last not in failure.message else ""
    return BuildFailed(f"The app does not start: {failure.message}{hint if is_mute else ''}{words}", told)
