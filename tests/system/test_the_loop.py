"""Requests at and beyond their limits.

`tests.attacks` measures how long the event loop is blocked meanwhile.
"""

import json
from collections.abc import Callable

import pytest
from pydantic import JsonValue

from tests.system.service_process import ServiceProcess

JSON = {"Content-Type": "application/json"}


def empty(number: int) -> list[JsonValue]:
    return [[] for _ in range(number)]


def call(value: JsonValue) -> JsonValue:
    return {"tool_id": "echo", "params": {"message": value}}


def said(begin: str, each: str, times: int, end: str, status: int = 200) -> JsonValue:
    params: JsonValue = {"mode": "say", "begin": begin, "each": each, "times": times, "end": end, "status": status}
    return {"tool_id": "versatile", "params": params}


def action(text: str) -> JsonValue:
    return {"text": f"<ACTION><echo><message><![CDATA[{text}]]></message></echo></ACTION>"}


WORD = '"' + "x" * 56 + '",'
REQUESTS: dict[str, tuple[str, Callable[[], JsonValue], int]] = {
    "a hundred thousand numbers": ("/run_tool", lambda: call([*range(100_000)]), 200),
    "as many lists as may be": ("/run_tool", lambda: call(empty(109_900)), 200),
    "a third of a million lists": ("/run_tool", lambda: call(empty(330_000)), 422),
    "a batch of as many": ("/run_tools", lambda: {"calls": [call(empty(5_000)) for _ in range(20)]}, 200),
    "an action of as many": ("/agent/action", lambda: action(json.dumps(empty(109_900))), 200),
    "an action of ten times as many": ("/agent/action", lambda: action("[" + "[]," * 690_000 + "1]"), 200),
    "an answer of 16 MB": ("/run_tool", lambda: said("[", WORD, 249_000, "1]"), 200),
    "an answer of a million lists": ("/run_tool", lambda: said("[", "[],", 1_000_000, "1]"), 502),
    "a deep answer": ("/run_tool", lambda: said("[" * 199, "", 0, "]" * 199), 502),
    "a deep failure": ("/run_tool", lambda: said("[" * 199, "", 0, "]" * 199, 500), 502),
    "deep parameters": ("/run_tool", lambda: call(json.loads("[" * 197 + "]" * 197)), 400),
}
"""Their bodies are made when they are sent: they are large."""


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_at_its_limits_is_answered_and_one_beyond_them_refused(service: ServiceProcess, what: str) -> None:
    path, body, status = REQUESTS[what]
    answer = service.http.post(path, content=json.dumps(body(), separators=(",", ":")), headers=JSON)
    assert answer.status_code == status, answer.text[:500]


def test_health_tells_how_long_the_loop_has_stood_still(service: ServiceProcess) -> None:
    pause = service.http.get("/health").json()["loop"]
    assert pause["window_s"] == 300
    assert pause["longest_pause_s"] >= 0
