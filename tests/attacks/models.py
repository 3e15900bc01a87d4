"""A model whose answers are bombs or never come, and clients that follow its task without reading."""

import socket
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.attacks.peer import Peer
from tests.attacks.requests import connected
from tests.system.waiting import wait_until

__all__ = ["BOMBS", "STREAMS"]

_SPEC = {"type": "build_tool", "tool_name": "attack_made", "description": "Counts words."}
_FOLLOWERS = 100
_LINE = "0" * 2_000


@contextmanager
def _bomb(_folder: Path, peer: Peer) -> Generator[Mapping[str, str]]:
    yield {"MODEL": "attacker", "MODEL_API_KEY": "none", "MODEL_BASE_URL": f"{peer.url}/bomb"}


@contextmanager
def _slow(_folder: Path, peer: Peer) -> Generator[Mapping[str, str]]:
    yield {"MODEL": "attacker", "MODEL_API_KEY": "none", "MODEL_BASE_URL": f"{peer.url}/slow"}


def model_bomb(target: Target) -> str:
    """The task may fail or wait for a better answer; it can be cancelled, which leaves nothing."""
    task_id = _made(target)
    wait_until(lambda: target.peer.asked.get("/bomb/v1/messages"), "the model is asked", 60.0)
    # It is asked again: each answer is a bomb.
    time.sleep(5)
    return _cancelled(target, task_id)


def silent_followers(target: Target) -> str:
    """A hundred clients follow a task without reading while its log grows; the log goes on, and others are served."""
    task_id = _made(target)
    wait_until(lambda: target.peer.asked.get("/slow/v1/messages"), "the model is asked", 60.0)
    with ExitStack() as stack:
        followers = [stack.enter_context(_follows(target, task_id)) for _ in range(_FOLLOWERS)]
        statuses = [target.post(f"/tasks/{task_id}/messages", {"text": _LINE}).status_code for _ in range(40)]
        expect(len(followers) == _FOLLOWERS and set(statuses) <= {202, 409, 429}, f"messages: {set(statuses)}")
        expect(target.call("echo", {"message": "x"}).is_success, "another caller is not served")
    return _cancelled(target, task_id)


def _follows(target: Target, task_id: str) -> socket.socket:
    connection = connected(target)
    # So small a window that the other side has to keep what is not read.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.sendall(f"GET /tasks/{task_id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def _made(target: Target) -> str:
    answer = target.post("/create_tool", {"description": "Counts words.", "task_spec": _SPEC})
    expect(answer.status_code == 202, f"HTTP {answer.status_code}: {answer.text[:300]}")
    return answer.json()["task_id"]


def _cancelled(target: Target, task_id: str) -> str:
    target.post(f"/tasks/{task_id}/cancel", {})
    ended = {"completed", "failed", "cancelled"}
    wait_until(lambda: target.ask("GET", f"/tasks/{task_id}").json()["status"] in ended, "the cancelled task ends", 60.0)
    return target.ask("GET", f"/tasks/{task_id}").json()["status"]


BOMBS = Kind(
    "models",
    (Attack("bomb", "a model whose answers are 1 GiB, packed twice", model_bomb, in_ci=False),),
    around=_bomb,
)
STREAMS = Kind(
    "streams",
    (Attack("silent-followers", "100 who follow a task and never read", silent_followers, in_ci=False, is_load=True),),
    around=_slow,
)
