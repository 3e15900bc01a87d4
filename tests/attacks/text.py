"""Texts of tools that are not valid text: halves of characters, bytes, file names."""

from http import HTTPStatus

import httpx

from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import ACTING, ATTACKER, FILES, peer_tool
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_CALL_S = 25.0


def progress(target: Target) -> str:
    """An attempt with invalid progress is not lost and repeated: the call succeeds once, with readable progress."""
    return ", ".join(_followed(target, tool_id) for tool_id in (ATTACKER, ACTING))


def _followed(target: Target, tool_id: str) -> str:
    answer = target.call(tool_id, {"mode": "progress"}, mode="async")
    expect(answer.status_code == HTTPStatus.ACCEPTED, f"HTTP {answer.status_code}: {answer.text[:200]}")
    call_id = answer.json()["task_id"]

    def ended() -> str | None:
        looked = target.ask("GET", f"/tasks/{call_id}")
        expect(looked.status_code == HTTPStatus.OK, f"HTTP {looked.status_code} while it runs: {looked.text[:200]}")
        return looked.json()["status"] if looked.json()["result"] else None

    status = wait_until(ended, f"the call of {tool_id} with half a character in its progress ends", _CALL_S)
    events = [event["event_type"] for event in target.ask("GET", f"/tasks/{call_id}").json()["events"]]
    expect(events.count("execution_started") <= 1, f"it was begun {events.count('execution_started')} times")
    expect(status == "completed", f"it ended as {status}")
    return status


def _told(answer: httpx.Response) -> str:
    answer.content.decode("utf-8", "strict")
    return answered(answer, {200, 502})


def results(target: Target) -> str:
    scripts = [_told(target.call(ATTACKER, {"mode": mode})) for mode in ("surrogate", "bytes")]
    return ", ".join([*scripts, _told(target.call(peer_tool("/surrogates")))])


def parameters(target: Target) -> str:
    """Invalid text from a caller: half a character in a value, in a name, in the id of the tool."""
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
        expect(answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, f"HTTP {answer.status_code} to {body!r}: {answer.text[:200]}")
        told.append(str(answer.status_code))
    return ", ".join(told)


def names(target: Target) -> str:
    answer = target.call(FILES, {"mode": "names"})
    return answered(answer, {422, 502})


KIND = Kind(
    "text",
    (
        Attack("progress", 'scripts say `::progress:: {"message": "\\ud800"}`', progress),
        Attack("results", "halves of characters and bytes as results of scripts and peers", results),
        Attack("parameters", "the same in what callers send", parameters),
        Attack("names", "a pipe, links and names that are no text as output files", names),
    ),
)
