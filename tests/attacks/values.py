"""Requests and answers within the limits of bytes that are dear to decode, to copy or to walk over."""

import json

import httpx
from pydantic import JsonValue

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.attacks.catalog import ATTACKER, peer_tool

__all__ = ["KIND"]

_CALLERS_FAULT = {400, 413, 422}


def _refused(answer: httpx.Response) -> str:
    expect(answer.status_code in _CALLERS_FAULT, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return f"{answer.status_code}: {answer.text[:60]}"


def lists(target: Target) -> str:
    return _refused(target.call("echo", {"message": [[] for _ in range(330_000)]}))


def lists_in_a_batch(target: Target) -> str:
    call: JsonValue = {"tool_id": "echo", "params": {"message": [[] for _ in range(4_000)]}}
    answer = target.post("/run_tools", {"calls": [call] * 90})
    expect(answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return str(answer.status_code)


def lists_without_a_tool(target: Target) -> str:
    """They have to be refused, or called wrong, before anybody looks for the tool."""
    answer = target.call("nobody", {"message": [[] for _ in range(330_000)]})
    expect(answer.status_code in _CALLERS_FAULT | {404}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return str(answer.status_code)


def deep(target: Target) -> str:
    body = b'{"tool_id": "echo", "params": {"message": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    return _refused(target.ask("POST", "/run_tool", content=body, headers={"Content-Type": "application/json"}))


def names(target: Target) -> str:
    """As many names as fit, in one object: pairs are dearer than values."""
    answer = target.call("echo", {"message": "x", **{f"{number:x}": 0 for number in range(100_000)}})
    expect(answer.status_code in _CALLERS_FAULT | {200}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return str(answer.status_code)


def long_number(target: Target) -> str:
    body = b'{"tool_id": "echo", "params": {"message": ' + b"9" * 900_000 + b"}}"
    answer = target.ask("POST", "/run_tool", content=body, headers={"Content-Type": "application/json"})
    expect(answer.status_code in _CALLERS_FAULT | {200}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return str(answer.status_code)


def numbers(target: Target) -> str:
    """What has to go on working: a hundred thousand numbers."""
    answer = target.call("echo", {"message": "x", "more": [*range(99_000)]})
    expect(answer.status_code in {200, 422}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    asked = target.call(ATTACKER, {"mode": "numbers", "count": 99_000})
    expect(asked.status_code == httpx.codes.OK, f"a script's 99,000 numbers: HTTP {asked.status_code}: {asked.text[:200]}")
    return f"{answer.status_code}, {asked.status_code}"


def _answered_badly(answer: httpx.Response) -> str:
    """A tool's answer that we do not take, or do, but never an error of ours."""
    said = answer.json()
    expect(answer.status_code in {200, 502, 504}, f"HTTP {answer.status_code}: {answer.text[:200]}")
    return f"{answer.status_code} {said['error_type'] or said['status']}"


def answer_of_lists(target: Target) -> str:
    return _answered_badly(target.call(peer_tool("/lists")))


def answer_of_a_script(target: Target) -> str:
    return _answered_badly(target.call(ATTACKER, {"mode": "lists"}))


def deep_answers(target: Target) -> str:
    told = [_answered_badly(target.call(peer_tool("/deep"))), _answered_badly(target.call(ATTACKER, {"mode": "deep", "depth": 50_000}))]
    return ", ".join(told)


def many_at_once(target: Target) -> str:
    """Ten megabytes of small values, where one megabyte is allowed."""
    body = json.dumps({"tool_id": "echo", "params": {"message": [[]] * 3_500_000}}).encode()
    return _refused(target.ask("POST", "/run_tool", content=body, headers={"Content-Type": "application/json"}))


KIND = Kind(
    "values",
    (
        Attack("lists", "parameters of 330,000 empty lists, under 1 MiB", lists),
        Attack("lists-without-a-tool", "the same for a tool that is not there", lists_without_a_tool),
        Attack("lists-in-a-batch", "a batch of 90 calls with 4,000 empty lists each", lists_in_a_batch, is_load=True),
        Attack("deep", "a body 100,000 levels deep", deep),
        Attack("names", "100,000 names in one object", names),
        Attack("long-number", "a number of 900,000 digits", long_number),
        Attack("numbers", "99,000 numbers to a tool and from a script: these have to pass", numbers),
        Attack("answer-of-lists", "330,000 empty lists as a remote tool's answer", answer_of_lists),
        Attack("answer-of-a-script", "the same from a script", answer_of_a_script),
        Attack("deep-answers", "answers of 100,000 and 50,000 levels", deep_answers),
        Attack("ten-megabytes", "a body of 10 MB", many_at_once),
    ),
)
