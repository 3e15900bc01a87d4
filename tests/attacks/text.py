"""Text of tools that is no text: halves of characters, bytes, names of files."""

import re

import httpx

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.attacks.catalog import ACTING, ATTACKER, FILES, peer_tool
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_CALL_S = 25.0


def progress(target: Target) -> str:
    """An attempt that cannot say how far it is must not be lost and made again: what acts, acts once, and ends in its time."""
    answer = target.post("/run_tool", {"tool_id": ACTING, "params": {"mode": "progress"}, "mode": "async"})
    expect(answer.status_code == httpx.codes.ACCEPTED, f"HTTP {answer.status_code}: {answer.text[:200]}")
    call_id = answer.json()["task_id"]

    def ended() -> str | None:
        task = target.ask("GET", f"/tasks/{call_id}").json()
        return task["status"] if task["result"] else None

    status = wait_until(ended, "the call with half a character in its progress ends", _CALL_S)
    begun = [event for event in target.ask("GET", f"/tasks/{call_id}").json()["events"] if event["type"] == "execution_started"]
    expect(len(begun) <= 1, f"it was begun {len(begun)} times")
    expect(status == "completed", f"it ended as {status}")
    return status


def progress_while_looked_at(target: Target) -> str:
    """The page of the task and its stream carry it too."""
    answer = target.post("/run_tool", {"tool_id": ATTACKER, "params": {"mode": "progress", "seconds": 3}, "mode": "async"})
    call_id = answer.json()["task_id"]
    stream = target.ask("GET", f"/tasks/{call_id}/events", headers={"Accept": "text/event-stream"})
    expect(stream.status_code == httpx.codes.OK, f"HTTP {stream.status_code}")
    expect(stream.content.decode("utf-8", "strict") != "", "an empty stream")
    return f"{stream.status_code}, {len(stream.content):,} bytes"


def _told(answer: httpx.Response) -> str:
    answer.content.decode("utf-8", "strict")
    expect(answer.status_code in {200, 502}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    call_id = answer.headers["X-Call-Id"]
    expect(re.fullmatch(r"call-[\w-]+", call_id), f"call id {call_id!r}")
    return f"{answer.status_code} {answer.json()['error_type'] or 'success'}"


def results(target: Target) -> str:
    asked = [(ATTACKER, {"mode": "surrogate"}), (ATTACKER, {"mode": "bytes"}), (peer_tool("/surrogates"), {})]
    return ", ".join(_told(target.call(tool_id, params)) for tool_id, params in asked)


def parameters(target: Target) -> str:
    """What a caller sends is no better: half a character in a value, in a name, in the id of the tool."""
    told: list[str] = []
    for body in (
        rb'{"tool_id": "echo", "params": {"message": "\ud800"}}',
        rb'{"tool_id": "echo", "params": {"message": "x", "\ud800": 1}}',
        rb'{"tool_id": "\ud800", "params": {}}',
        rb'{"tool_id": "echo", "params": {"message": "\u0000"}, "caller": {"caller_id": "\ud800"}}',
        b'{"tool_id": "echo", "params": {"message": "\xff"}}',
        b'{"tool_id": "echo", "params": {"message": NaN, "more": 1e999}}',
    ):
        answer = target.ask("POST", "/run_tool", content=body, headers={"Content-Type": "application/json"})
        expect(answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR, f"HTTP {answer.status_code} to {body!r}: {answer.text[:200]}")
        told.append(str(answer.status_code))
    return ", ".join(told)


def names(target: Target) -> str:
    answer = target.call(FILES, {"mode": "names"})
    expect(answer.status_code in {502, 422}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return f"{answer.status_code} {answer.json()['error_type']}"


KIND = Kind(
    "text",
    (
        Attack("progress", 'a script that acts says `::progress:: {"message": "\\ud800"}`', progress),
        Attack("progress-while-looked-at", "the same, followed as a stream", progress_while_looked_at),
        Attack("results", "halves of characters and bytes as results of scripts and peers", results),
        Attack("parameters", "the same in what callers send", parameters),
        Attack("names", "a pipe, links and names that are no text as output files", names),
    ),
)
