"""Requests and answers within the limits of size that are expensive to decode, copy or walk through."""

import json

import httpx

from tests.attacks.attack import Attack, Kind, Target, answered
from tests.attacks.catalog import ATTACKER, peer_tool

__all__ = ["KIND"]

_CALLERS_FAULT = {400, 413, 422}
_JSON = {"Content-Type": "application/json"}


def _lists(count: int) -> list[list[object]]:
    return [[] for _ in range(count)]


def lists(target: Target) -> str:
    return answered(target.call("echo", {"message": _lists(330_000)}), _CALLERS_FAULT)


def lists_in_a_batch(target: Target) -> str:
    call = {"tool_id": "echo", "params": {"message": _lists(4_000)}}
    return answered(target.post("/run_tools", {"calls": [call] * 90}), _CALLERS_FAULT | {200})


def lists_without_a_tool(target: Target) -> str:
    """They are refused before a tool is looked up."""
    return answered(target.call("nobody", {"message": _lists(330_000)}), _CALLERS_FAULT | {404})


def deep(target: Target) -> str:
    body = b'{"tool_id": "echo", "params": {"message": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    return answered(target.ask("POST", "/run_tool", content=body, headers=_JSON), _CALLERS_FAULT)


def names(target: Target) -> str:
    """In one object: pairs are more expensive than values."""
    return answered(target.call("echo", {"message": "x", **{f"{number:x}": 0 for number in range(100_000)}}), {422})


def most_names(target: Target) -> str:
    """The largest permitted number of names."""
    return answered(target.call("echo", {"message": {f"{number:x}": 0 for number in range(54_900)}}), {200})


def long_number(target: Target) -> str:
    body = b'{"tool_id": "echo", "params": {"message": ' + b"9" * 900_000 + b"}}"
    return answered(target.ask("POST", "/run_tool", content=body, headers=_JSON), _CALLERS_FAULT | {200})


def numbers(target: Target) -> str:
    """A hundred thousand numbers, which must be accepted."""
    asked = answered(target.call("echo", {"message": [*range(99_000)]}), {200})
    return f"{asked}, {answered(target.call(ATTACKER, {'mode': 'numbers', 'count': 99_000}), {200})}"


def _answered_badly(answer: httpx.Response) -> str:
    """A tool's answer that is refused or accepted, without an error of the service."""
    return answered(answer, {200, 502, 504})


def answer_of_lists(target: Target) -> str:
    return _answered_badly(target.call(peer_tool("/lists")))


def answer_of_a_script(target: Target) -> str:
    return _answered_badly(target.call(ATTACKER, {"mode": "lists"}))


def deep_answers(target: Target) -> str:
    told = [_answered_badly(target.call(peer_tool("/deep"))), _answered_badly(target.call(ATTACKER, {"mode": "deep", "depth": 50_000}))]
    return ", ".join(told)


def many_at_once(target: Target) -> str:
    """Ten megabytes of small values; the limit is one megabyte."""
    body = json.dumps({"tool_id": "echo", "params": {"message": [[]] * 3_500_000}}).encode()
    return answered(target.ask("POST", "/run_tool", content=body, headers=_JSON), _CALLERS_FAULT)


KIND = Kind(
    "values",
    (
        Attack("lists", "parameters of 330,000 empty lists, under 1 MiB", lists),
        Attack("lists-without-a-tool", "the same for a tool that is not there", lists_without_a_tool),
        Attack("lists-in-a-batch", "a batch of 90 calls with 4,000 empty lists each", lists_in_a_batch, is_load=True),
        Attack("deep", "a body 100,000 levels deep", deep),
        Attack("names", "100,000 names in one object", names),
        Attack("most-names", "54,900 names in one object, which have to pass", most_names),
        Attack("long-number", "a number of 900,000 digits", long_number),
        Attack("numbers", "99,000 numbers to a tool and from a script: these have to pass", numbers),
        Attack("answer-of-lists", "330,000 empty lists as a remote tool's answer", answer_of_lists),
        Attack("answer-of-a-script", "the same from a script", answer_of_a_script),
        Attack("deep-answers", "answers of 100,000 and 50,000 levels", deep_answers),
        Attack("ten-megabytes", "a body of 10 MB", many_at_once),
    ),
)
