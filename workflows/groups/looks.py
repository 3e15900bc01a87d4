"""Looks at the provider of a session, by the `verify` of its group."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.contracts.calls import ToolResult
from toolagent.contracts.groups import VerifyProbe
from toolagent.contracts.sessions import OpenSession, SessionView
from toolagent_service import stubs
from toolagent_service.contracts.sessions import SessionStep
from toolagent_service.groups import sessions
from workflows import options
from workflows.cancelling import despite_cancellation
from workflows.invoke import invoke

_STRICTLY = "unlisted-if-all-are-of-others"
"""Before this patch, a list confirmed a stop without bindings if it had only unnamed items that were not what the session launched."""


async def look(request: OpenSession, view: SessionView, probe: VerifyProbe, call_id: str, number: int) -> ToolResult:
    """Look for a launch whose answer was lost."""
    return await _look(request, view, probe, call_id, f"{call_id} look {number}")


async def is_unlisted(request: OpenSession, view: SessionView) -> bool:
    """Whether the provider's complete list lacks what the session launched.

    A provider that is asked for one launch searches by resemblance: not finding it is no reason to end the stop.
    """
    probe, call_id = request.group.verify, view.launch_call_id
    if probe is None or probe.asks is not None or call_id is None:
        return False
    listed = await _look(request, view, probe, call_id, f"gone {view.stop_attempts}")
    if not sessions.is_unlisted(request.group, probe, listed, view, strictly=False):
        return False
    return sessions.is_unlisted(request.group, probe, listed, view) or not workflow.patched(_STRICTLY)


async def _look(request: OpenSession, view: SessionView, probe: VerifyProbe, call_id: str, name: str) -> ToolResult:
    others: tuple[JsonValue, ...] = ()
    if probe.others is not None:
        step = SessionStep(group=request.group, view=view)
        others = await despite_cancellation(
            lambda: workflow.execute_local_activity(stubs.list_launches, step, **options.session_note("others"))
        )
    call = sessions.looked_up(request, view, probe, call_id, others)
    return await invoke(call, sessions.call_id_in(request.session_id, name), prefer=view.host, version=view.versions.get(call.tool_id))
