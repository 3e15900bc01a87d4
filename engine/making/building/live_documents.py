"""Asks an app that was just started what it offers, or says why it did not start."""

import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue

from engine.making.building.builds import Job
from engine.making.failures import BuildFailed
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.runtimes.failures import RuntimeFailure, StartFailed
from engine.runtimes.runtime import Runtime, ToolRequest
from toolagent.contracts.calls import ErrorType
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

_LAST = 300
_LOGS = frozenset({"stderr", "log"})
"""Where runtimes put what a program wrote."""
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"(\w+\.)*\w*(Error|Exception|Invalid)(:|$)")
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


def not_started(failure: StartFailed, hint: str) -> BuildFailed:
    is_mute = "last_answer" in failure.details
    logs = (failure.details.get(name) for name in _LOGS) if failure.details.keys() & _LOGS else failure.details.values()
    told = "\n".join(value for value in logs if isinstance(value, str) and value)
    if failure.error_type is not ErrorType.UNAVAILABLE:
        # There is nothing to start: no image, no environment.
        return BuildFailed(failure.message, told)
    # What a program says last is why it ended, and what it raised says so before other lines.
    lines = [line.strip() for line in told.rpartition(_TRACEBACK)[2].splitlines() if line.strip()]
    raised = (line for line in reversed(lines) if _TRACEBACK in told and _RAISED.match(line))
    last = next(raised, lines[-1] if lines else "")[:_LAST]
    words = f" It said last: {last}" if last and last not in failure.message else ""
    return BuildFailed(f"The app does not start: {failure.message}{hint if is_mute else ''}{words}", told)


def _document(said: JsonValue) -> OpenApiDocument | None:
    try:
        # Of its servers none counts: it is served here, at its own paths.
        return OpenApiDocument.of({**said, "servers": []}) if isinstance(said, dict) else None
    except DocumentRefused:
        return None
