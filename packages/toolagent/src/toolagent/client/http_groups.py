"""Groups and their sessions over HTTP."""

from pydantic import JsonValue

from toolagent.client.http_answers import is_problem, parsed, require_success
from toolagent.client.http_paths import given, path_of
from toolagent.client.http_requests import Requests
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.http import GroupListing, SessionListing
from toolagent.contracts.sessions import SessionRun, SessionView

__all__ = ["GroupRequests"]


class GroupRequests(Requests):
    """The methods of `ToolAgentHttp` for groups. They raise the same errors as its others, and wait for providers without a time limit."""

    def groups(self) -> GroupListing:
        return self._get(GroupListing, "groups")

    def group(self, group_id: str) -> ToolGroup:
        return self._get(ToolGroup, "groups", group_id)

    def open_session(
        self, group_id: str, params: dict[str, JsonValue] | None = None, key: str | None = None, *, lease_s: float | None = None
    ) -> SessionView:
        """Launch a session. The same idempotency key is the same session. If the launch fails, `state` is `failed`.

        With `lease_s` it stops if it is neither used nor renewed for this many seconds.
        """
        headers = {"Idempotency-Key": key} if key else None
        body = given(params=params or {}, lease_s=lease_s)
        return self._post(SessionView, "groups", group_id, "sessions", body=body, unbounded=True, headers=headers)

    def sessions(self, group_id: str, *, living: bool = False) -> SessionListing:
        """The newest first."""
        return self._get(SessionListing, "groups", group_id, "sessions", living=str(living).lower())

    def session(self, group_id: str, session_id: str) -> SessionView:
        return self._get(SessionView, *_path(group_id, session_id))

    def run_in_session(self, group_id: str, session_id: str, run: SessionRun) -> ToolResult:
        """Make one call in a session. Errors of the tool are in the result."""
        body = run.model_dump(mode="json", exclude_none=True)
        answer = self._ask("POST", path_of(*_path(group_id, session_id), "run"), body, unbounded=True)
        if is_problem(answer):
            require_success(answer)
        return parsed(ToolResult, answer, also=(answer.status_code,))

    def renew_session(self, group_id: str, session_id: str) -> SessionView:
        """Renew the lease of a session."""
        return self._post(SessionView, *_path(group_id, session_id), "renew")

    def stop_session(self, group_id: str, session_id: str) -> SessionView:
        """Stop a session. It may still be stopping if the provider takes long."""
        return self._post(SessionView, *_path(group_id, session_id), "stop", unbounded=True)


def _path(group_id: str, session_id: str) -> tuple[str, ...]:
    return "groups", group_id, "sessions", session_id
