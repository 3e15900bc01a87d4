"""Ids of new calls."""

import secrets
import time

__all__ = ["new_call_id"]


def new_call_id() -> str:
    """`call-` and 32 hex digits: the time in milliseconds, then 80 random bits.

    Calls of the same time are neighbours in the index of a database, which so writes few pages.
    """
    return f"call-{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
