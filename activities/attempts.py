"""Identifies an attempt of an activity."""

from temporalio import activity


def attempt_key() -> str:
    """Differs from that of every other attempt at every step."""
    info = activity.info()
    return f"{info.workflow_run_id}:{info.activity_id}:{info.attempt}"
