"""Call ids derived from keys, and fingerprints of calls."""

import hashlib
import json
import re

from toolagent.contracts.calls import ToolCall
from toolagent.contracts.identifiers import CALL_ID_PATTERN
from toolagent.core.digests import id_of

__all__ = ["call_id_for_key", "call_id_for_request", "call_id_of_workflow", "fingerprint", "is_generated", "keyed_call_id"]

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def call_id_for_key(caller_id: str | None, key: str) -> str:
    """The call id for a caller's idempotency key; equal keys of two callers are different calls."""
    return id_of("call-", caller_id, key)


def keyed_call_id(call: ToolCall) -> str | None:
    """The id that follows from the call's key; None without one."""
    return None if call.idempotency_key is None else call_id_for_key(call.caller.caller_id, call.idempotency_key)


def call_id_for_request(request_id: str) -> str:
    """The call id for a request that is delivered, under the same id, until it is answered."""
    return id_of("call-", "request", request_id)


def call_id_of_workflow(workflow_id: str, first_run_id: str) -> str:
    """The call id of a call that was started as this workflow.

    A workflow id of our form is the call id. Any other may be used again for another call, so the run decides.
    """
    return workflow_id if re.fullmatch(CALL_ID_PATTERN, workflow_id) else f"call-{first_run_id}"


def is_generated(call_id: str) -> bool:
    """Whether the id has the form of the ids of calls without a key."""
    return re.fullmatch(r"call-[0-9a-f]{32}", call_id) is not None


def fingerprint(call: ToolCall) -> str:
    """Tool, version and parameters: equal for two calls that are the same call."""
    content = _CANONICAL.encode([call.tool_id, call.version, call.params])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
