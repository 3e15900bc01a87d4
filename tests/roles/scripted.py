"""The scripted endpoint for tests of providers: one conversation for each situation."""

from pydantic import JsonValue

from engine.roles.conformance import MODEL, RETRY_AFTER_S, Situation
from toolagent.testing.servers.scenario import Conversation, Scenario, Turn

__all__ = ["KEY", "scenario"]

KEY = "sk-test-0123456789abcdef"

_TALK: dict[str, JsonValue] = {"text": "Grüß Gott, 世界"}
_USE: dict[str, JsonValue] = {
    "content": [
        {"type": "thinking", "thinking": "Two files.", "signature": "signed"},
        {"type": "text", "text": "I read both."},
        {"type": "tool_use", "name": "read_file", "input": {"path": "main.py"}},
        {"type": "tool_use", "name": "read_file", "input": {"path": "测试.py"}},
    ]
}
_PLAYED: dict[Situation, list[dict[str, JsonValue]]] = {
    Situation.TALKS: [_TALK],
    Situation.USES: [_USE, {"text": "done", "expect": {"last_result": "x = 1", "is_error": True, "tools": "read_file", "system": "tried"}}],
    Situation.SLOW: [{**_TALK, "seconds": 0.5}],
    Situation.SILENT: [{**_TALK, "fault": {"kind": "slow", "seconds": 10, "times": "forever"}}],
    Situation.RATE_LIMITED: [{**_TALK, "fault": {"kind": "rate_limit", "retry_after": RETRY_AFTER_S, "times": "forever"}}],
    Situation.OVERLOADED: [{**_TALK, "fault": {"kind": "overloaded", "times": "forever"}}],
    Situation.BROKEN: [{**_TALK, "fault": {"kind": "server_error", "times": "forever"}}],
    Situation.CUT: [{**_TALK, "fault": {"kind": "cut", "times": "forever"}}],
    Situation.ENDED_EARLY: [{**_TALK, "fault": {"kind": "ended_early", "times": "forever"}}],
    Situation.MALFORMED: [{**_TALK, "fault": {"kind": "malformed", "times": "forever"}}],
    Situation.FAILS_LATE: [{**_TALK, "fault": {"kind": "error_event", "times": "forever"}}],
    Situation.FORBIDDEN: [{**_TALK, "fault": {"kind": "forbidden", "times": "forever"}}],
    Situation.INVALID: [{**_TALK, "fault": {"kind": "invalid_request", "times": "forever"}}],
}


def scenario() -> Scenario:
    """Every situation of the conformance suite."""
    conversations = tuple(
        Conversation(name=situation.name, when=situation.value, turns=tuple(Turn.model_validate(turn) for turn in turns))
        for situation, turns in _PLAYED.items()
    )
    return Scenario(name="providers", key=KEY, models=(MODEL,), conversations=conversations)
