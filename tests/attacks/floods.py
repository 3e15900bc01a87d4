"""More legitimate requests at once than there is room for."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.attacks.attack import PATIENCE_S, Attack, Kind, Target, at_once, expect
from tests.attacks.catalog import ATTACKER, peer_tool
from tests.attacks.requests import connected

__all__ = ["KIND"]

_BODY = b'{"tool_id": "echo", "params": {"message": "x"}}'
_HEAD = f"POST /run_tool HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n\r\n".encode()


def crowd(target: Target) -> str:
    """Two hundred callers of a quick tool beside sixty of slow ones: every quick one is answered."""
    slow, quick, each = (60, 200, 10) if target.is_long else (20, 20, 2)
    with ThreadPoolExecutor(slow + quick) as callers:
        behind = [callers.submit(target.call, ATTACKER, {"mode": "sleep", "seconds": 2}, timeout_s=5) for _ in range(slow)]
        asked = [callers.submit(_many, target, each) for _ in range(quick)]
        told = Counter[int]()
        for one in asked:
            told.update(one.result())
        for one in behind:
            one.exception()
    expect(set(told) == {200}, f"quick callers got {dict(told)}")
    return f"{told.total()} quick calls answered"


def _many(target: Target, times: int) -> list[int]:
    return [target.call("echo", {"message": "x"}).status_code for _ in range(times)]


def asynchronous(target: Target) -> str:
    """A thousand calls without a waiter, then one with a waiter."""
    count = 1000 if target.is_long else 60
    told = Counter(at_once(lambda: target.call("echo", {"message": "x"}, mode="async").status_code, count, 16))
    expect(set(told) <= {202, 429, 503}, str(dict(told)))
    answer = target.call("echo", {"message": "x"})
    expect(answer.is_success, f"HTTP {answer.status_code} after them")
    return ", ".join(f"{number}× {status}" for status, number in told.items())


def one_key(target: Target) -> str:
    """A hundred callers with the same key at once make one call."""
    body = {"tool_id": "echo", "params": {"message": "x"}, "idempotency_key": f"flood-{time.monotonic_ns()}"}
    answers = at_once(lambda: target.post("/run_tool", body), 100, 50)
    ids = {answer.headers["X-Call-Id"] for answer in answers}
    expect(len(ids) == 1 and all(answer.is_success for answer in answers), f"{len(ids)} ids, {Counter(a.status_code for a in answers)}")
    return "one call"


def endless_peers(target: Target) -> str:
    """Eight endless answers at once."""
    many = 8 if target.is_long else 4
    told = Counter(at_once(lambda: target.call(peer_tool("/endless")).status_code, many, many))
    expect(set(told) <= {502, 504}, str(dict(told)))
    return ", ".join(f"{number}× {status}" for status, number in told.items())


def gone(target: Target) -> str:
    """Callers that disconnect before the answer."""
    started = time.monotonic()
    left = at_once(lambda: _leaves(target), 200 if target.is_long else 40, 32)
    expect(all(left), "a caller could not ask")
    expect(time.monotonic() - started < PATIENCE_S, "it took long")
    return f"{len(left)} left"


def _leaves(target: Target) -> bool:
    with connected(target) as connection:
        connection.sendall(_HEAD + _BODY)
    return True


KIND = Kind(
    "floods",
    (
        # Who comes then is one of 261, whom two cores answer in turn.
        Attack("crowd", "200 callers beside 60 slow ones; a quick one within 10 s", crowd, is_load=True, quick_s=10.0),
        Attack("asynchronous", "1,000 calls that nobody waits for", asynchronous, is_load=True),
        Attack("one-key", "one idempotency key from 50 callers at once", one_key, is_load=True),
        Attack("endless-peers", "eight answers without an end at once", endless_peers, is_load=True),
        Attack("gone", "200 callers who leave before they are answered; a quick one within 10 s", gone, is_load=True, quick_s=10.0),
    ),
    settings={"BUCKET_LIMITS": '{"default": 16, "http": 8}'},
)
