"""Which call is which: ids derived from keys, and fingerprints that tell two calls apart."""

import hashlib
import json
import re

from toolagent.contracts.calls import ToolCall
from toolagent.contracts.identifiers import CALL_ID_PATTERN

__all__ = ["call_id_for_key", "call_id_of_workflow", "fingerprint"]


def call_id_for_key(caller_id: str | None, key: str) -> str:
    """The call id that a caller's idempotency key stands for; two callers' equal keys are different calls."""
    return f"call-{hashlib.sha256(json.dumps([caller_id, key]).encode()).hexdigest()[:40]}"


def call_id_of_workflow(workflow_id: str, first_run_id: str) -> str:
    """The call id of a call that was started as this workflow.

    A workflow id of our own form is the call id. Anybody else's may be used again for another call, so the run decides.
    """
    return workflow_id if re.fullmatch(CALL_ID_PATTERN, workflow_id) else f"call-{first_run_id}"


def fingerprint(call: ToolCall) -> str:
    """What must be equal for two calls under one key to be the same call: tool, version and parameters."""
    content = json.dumps([call.tool_id, call.version, call.params], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
