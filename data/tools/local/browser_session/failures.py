"""Failures for the caller: a status, an error type of Tool Agent, a stable reason, and a remedy."""

from typing import Any


class Failure(Exception):
    """`reason` is stable; `remedy` says what the caller can do."""

    def __init__(self, status: int, kind: str, reason: str, message: str, remedy: str = "", **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {
                "type": kind,
                "message": f"{message} {remedy}".strip(),
                "details": {"reason": reason, **({"remedy": remedy} if remedy else {}), **details},
            }
        }


def invalid(field: str | None, message: str, reason: str = "invalid_params", remedy: str = "", **details: Any) -> Failure:
    return Failure(422, "validation_error", reason, message, remedy, **({"field": field} if field else {}), **details)


def unknown_session(session_id: str) -> Failure:
    return invalid(
        "session_id",
        f"There is no session {session_id!r} here.",
        "unknown_session",
        "It may have ended with its process. Launch another with browser_launch.",
    )


def session_over(session_id: str, why: str) -> Failure:
    return invalid("session_id", f"The session {session_id!r} is over: {why}.", "session_stopped", "Launch another with browser_launch.")


def session_died(session_id: str) -> Failure:
    return Failure(
        410,
        "execution_error",
        "session_died",
        f"The Chromium of the session {session_id!r} has died.",
        "Stop the session with browser_stop, and launch another with browser_launch.",
    )


def session_launching(session_id: str) -> Failure:
    return Failure(409, "execution_error", "session_launching", f"The session {session_id!r} is still being launched.", "Wait a moment.")


def page_crashed(session_id: str) -> Failure:
    return Failure(
        409, "execution_error", "page_crashed", f"The page of the session {session_id!r} has crashed.", "Load one with browser_navigate."
    )


def host_not_allowed(host: str, why: str, field: str | None = None) -> Failure:
    return invalid(field, f"The host {host} may not be reached: {why}", "host_not_allowed", host=host)


def too_many(most: int) -> Failure:
    return Failure(
        503,
        "unavailable",
        "too_many_sessions",
        f"There are {most} sessions here, and no more are started.",
        "Stop one with browser_stop; browser_sessions lists them.",
        launched=False,
    )


def not_launched() -> Failure:
    return Failure(503, "unavailable", "not_launched", "Chromium ended while it was launched, or what drives it.", "Launch again.")


def chromium_missing(looked_at: str) -> Failure:
    return Failure(
        503,
        "unavailable",
        "chromium_missing",
        f"Chromium is not installed on this host (looked for {looked_at}).",
        "Install the package chromium (Debian: apt-get install --no-install-recommends chromium).",
        launched=False,
    )
