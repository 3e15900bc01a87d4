"""Peers whose answers are small in transit and large when decompressed, or never end."""

import time
from collections.abc import Callable
from http import HTTPStatus

from tests.attacks.attack import Attack, Kind, Target, answered, at_once, expect
from tests.attacks.catalog import peer_tool
from tests.making.inspection.git import repository
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_TOOLS_FAULT = {502, 503, 504}
_MOST_BYTES = 4 << 20
_MADE_S = 240.0
# Well until its document is asked for, which is half a gibibyte of some 500 kB.
_APP = """\
import zlib

from fastapi import FastAPI, Response

app = FastAPI(openapi_url=None)
pack = zlib.compressobj(9, zlib.DEFLATED, 31)
part = pack.compress(b" " * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
head = zlib.compressobj(9, zlib.DEFLATED, 31)
bomb = head.compress(b'{"openapi": "3.1.0", "x": "') + head.flush(zlib.Z_FULL_FLUSH) + part[10:] * 512


@app.get("/openapi.json")
def document() -> Response:
    return Response(bomb, media_type="application/json", headers={"Content-Encoding": "gzip"})
"""


def _asks(path: str) -> Callable[[Target], str]:
    """A call of the tool at this path of the peer fails in time, as the tool's fault."""

    def run(target: Target) -> str:
        answer = target.call(peer_tool(path))
        said = answer.json()
        expect(answer.status_code in _TOOLS_FAULT, f"HTTP {answer.status_code}: {answer.text[:200]}")
        return f"{answer.status_code} {said['error_type']}: {said['error']['message'][:60]}"

    return run


def four_at_once(target: Target) -> str:
    return ", ".join(at_once(lambda: _asks("/gzip-twice")(target), 4, 4))


def receivers(target: Target) -> str:
    """Callback receivers answer with a bomb or endlessly: the status 200 suffices, the body is not read."""
    told = [_delivered(target, path) for path in ("/gzip-twice", "/gzip", "/endless", "/drip")]
    return ", ".join(told)


def _delivered(target: Target, path: str) -> str:
    url = f"{target.peer.url}{path}"
    answer = target.post("/run_tool", {"tool_id": "echo", "params": {"message": "x"}, "mode": "async", "callback_url": url})
    expect(answer.status_code == HTTPStatus.ACCEPTED, f"HTTP {answer.status_code}: {answer.text[:200]}")
    task = f"/tasks/{answer.json()['task_id']}"

    def ended() -> str | None:
        state = target.ask("GET", task).json()["callback"]["state"]
        return state if state != "pending" else None

    state = wait_until(ended, f"the callback to {path} ends", 30.0)
    expect(state == "delivered", f"the callback to {path}: {state}")
    return state


def fetched(target: Target) -> str:
    """Fetched by `http_request`, which returns what fits."""
    told: list[str] = []
    for path in ("/gzip-twice", "/gzip", "/deflate", "/endless", "/drip", "/headers"):
        answer = target.call("http_request", {"url": f"{target.peer.url}{path}", "timeout": 5})
        expect(len(answer.content) <= _MOST_BYTES, f"{path}: {len(answer.content):,} bytes")
        told.append(answered(answer, {HTTPStatus.OK, *_TOOLS_FAULT}))
    return ", ".join(told)


def repository_document(target: Target) -> str:
    """A tool is made of a repository whose app answers `/openapi.json` with a bomb: the task fails and says why."""
    url = repository(target.data.parent / f"repositories/{time.monotonic_ns()}", {"app.py": _APP, "requirements.txt": "fastapi\n"})
    spec = {"type": "github_deploy", "repo_url": url, "tool_name": "attack_document"}
    answer = target.post("/create_tool", {"description": "a document that is a bomb", "task_spec": spec})
    expect(answer.status_code == HTTPStatus.ACCEPTED, f"HTTP {answer.status_code}: {answer.text[:300]}")
    place = f"/tasks/{answer.json()['task_id']}"
    ended = {"completed", "failed", "cancelled"}
    task = wait_until(lambda: one if (one := target.ask("GET", place).json())["status"] in ended else None, "the task ends", _MADE_S)
    expect(task["status"] == "failed", f"the task ended as {task['status']}")
    return f"failed: {task.get('reason')}"


KIND = Kind(
    "bombs",
    (
        Attack("gzip-twice", "a remote tool's answer of some kB that is 1 GiB (`gzip, gzip`)", _asks("/gzip-twice")),
        Attack("four-at-once", "four of them at once", four_at_once),
        Attack("gzip", "the same, packed once", _asks("/gzip")),
        Attack("deflate", "the same by `deflate`", _asks("/deflate")),
        Attack("endless", "an answer that does not end, as fast as it goes", _asks("/endless")),
        Attack("drip", "an answer of a byte now and then, for ever", _asks("/drip")),
        Attack("headers", "headers for ever", _asks("/headers")),
        Attack("cut-short", "a length of a tebibyte, and one byte", _asks("/cut-short")),
        Attack("redirect", "a redirect to itself", _asks("/redirect")),
        Attack("nonsense", "no HTTP", _asks("/nonsense")),
        Attack("receivers", "receivers of callbacks that answer with bombs, without an end, a byte now and then", receivers, in_ci=False),
        Attack("http-request", "the same for `http_request`", fetched, in_ci=False),
        Attack(
            "repository", "a repository whose `/openapi.json` is 500 kB that are 512 MiB", repository_document, is_load=True, in_ci=False
        ),
    ),
    settings={
        "CALLBACK_ALLOW": "127.0.0.1",
        "SECRET_CALLBACK": "of-the-attacks",
        "HTTP_REQUEST_ALLOW": "127.0.0.1",
        "REPO_SCHEMES": "https,file",
    },
)
