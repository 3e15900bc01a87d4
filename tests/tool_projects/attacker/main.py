"""A malicious script; its caller chooses the attack by `{"mode": …}` on stdin."""
# A tool has no settings of ours, and these are the calls that it means.
# ruff: noqa: TID251, S108, PTH102, PTH211

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path


def progress(params):
    """Half a character in a progress message and in all other texts."""
    for line in (r'{"message": "\ud800", "fraction": 0.5}', r'{"message": "a\u0000b", "fraction": 1e999}', '{"message": 5}', "[" * 5000):
        sys.stderr.write(f"::progress:: {line}\n")
    sys.stderr.flush()
    sys.stderr.buffer.write(b"\xff\xfe\xed\xa0\x80\x00\n")
    time.sleep(params.get("seconds", 1.5))
    return "done"


def surrogate(_params):
    sys.stdout.write(r'{"message": "\ud800", "\udfff": [1]}')


def bytes_(_params):
    sys.stdout.buffer.write(b'{"message": "\xff\xed\xa0\x80"}')


def lists(_params):
    return [[] for _ in range(330_000)]


def numbers(params):
    return list(range(params["count"]))


def deep(params):
    sys.stdout.write("[" * params["depth"] + "]" * params["depth"])


def nested(params):
    """`[[[…"x"…]]]`."""
    sys.stdout.write('{"a": ' + "[" * params["depth"] + '"x"' + "]" * params["depth"] + "}")


def flood(params):
    """Bytes on stderr, then on stdout."""
    for stream in (sys.stderr.buffer, sys.stdout.buffer):
        for _ in range(params["mib"]):
            stream.write(b"0" * (1 << 20))
            stream.flush()


def folders(params):
    """Deeply nested folders in all writable places, with a file in the deepest."""
    name = "d" * params.get("name", 1)
    # The home of a script may be its /tmp.
    for place in {os.path.realpath(os.environ.get(name, "/tmp")) for name in ("TOOL_AGENT_OUTPUT_DIR", "HOME", "TMPDIR")}:
        if os.access(place, os.W_OK):
            os.chdir(place)
            for _ in range(params["depth"]):
                os.mkdir(name)
                os.chdir(name)
            Path("f").write_bytes(b"0" * params.get("bytes", 0))
    return {}


def locked(params):
    """Folders that their owner may not read, with content."""
    top = Path(os.environ["TOOL_AGENT_OUTPUT_DIR"]) / "locked"
    (top / "in").mkdir(parents=True)
    (top / "in" / "file").write_text("x")
    (top / "in").chmod(0)
    top.chmod(0)
    return {}


def names(_params):
    """Files with names that are not valid text."""
    top = os.fsencode(os.environ["TOOL_AGENT_OUTPUT_DIR"])
    for name in (b"\xff\xfe", b"a\nb", b"-rf", b"\xed\xa0\x80", b"x" * 255, b"\x1b[31m"):
        Path(os.fsdecode(top + b"/" + name)).write_text("x")
    os.symlink("/etc/passwd", os.fsdecode(top) + "/link")
    os.symlink("/", os.fsdecode(top) + "/root")
    os.mkfifo(os.fsdecode(top) + "/pipe")
    return {"file": "pipe"}


def children(_params):
    """Processes in their own sessions, which stay."""
    for _ in range(20):
        subprocess.Popen(["/bin/sleep", "300"], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
    return {}


def inotify(params):
    """Take all of them; returns the number."""
    libc = ctypes.CDLL(None, use_errno=True)
    taken = 0
    while taken < 200 and libc.inotify_init1(0) >= 0:
        taken += 1
    time.sleep(params["seconds"])
    return taken


def queues(params):
    """POSIX message queues, as many as there are."""
    libc = ctypes.CDLL(None, use_errno=True)
    taken = 0
    while taken < 64 and libc.mq_open(f"/q{taken}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
        taken += 1
    time.sleep(params["seconds"])
    return taken


def sleep(params):
    time.sleep(params["seconds"])
    return "done"


params = json.load(sys.stdin)
answer = {"bytes": bytes_}.get(params["mode"], globals()[params["mode"]] if params["mode"] != "bytes" else None)(params)
if answer is not None:
    json.dump(answer, sys.stdout)
