"""Small Python programs whose tasks stop in a known stage: at a build backend, a parser, an index or a run that waits."""

import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.making.inspection.git import repository

__all__ = ["WaitingIndex", "program", "waiting_index"]

_BOUND_S = 300.0
_WAITS = "import time; time.sleep(3600)"
_PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "waits"
version = "1.0"
dependencies = [{needs}]
scripts = {{waits = "waits:main"}}
"""
_BACKEND = """
import zipfile
MODULE = {module!r}
def build_wheel(folder, settings=None, metadata=None):
    {building}
    with zipfile.ZipFile(folder + "/waits-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("waits.py", MODULE)
        wheel.writestr("waits-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: waits\\nVersion: 1.0\\n")
        wheel.writestr("waits-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("waits-1.0.dist-info/entry_points.txt", "[console_scripts]\\nwaits = waits:main\\n")
        wheel.writestr("waits-1.0.dist-info/RECORD", "")
    return "waits-1.0-py3-none-any.whl"
"""
_MODULE = """
{reading}
import argparse
def main():
    parser = argparse.ArgumentParser(description="Says a word.")
    parser.add_argument("--word", default="hello")
    word = parser.parse_args().word
    {running}
    print(word)
"""


def program(folder: Path, waits: str = "") -> str:
    """The address of a repository whose task waits in stage `waits`: `cloning`, `building`, `locking`, `installing`, `reading` or
    `running`.
    """
    module = _MODULE.format(reading=_WAITS if waits == "reading" else "", running=_WAITS if waits == "running" else "pass")
    backend = _BACKEND.format(module=module, building=_WAITS if waits == "building" else "pass")
    needs = f'"{waits}"' if waits in ("locking", "installing") else ""
    url = repository(folder, {"pyproject.toml": _PYPROJECT.format(needs=needs), "backend.py": backend})
    if waits == "cloning":
        # Whoever opens a pipe to read it waits for somebody who writes.
        (folder / ".git" / "HEAD").unlink()
        os.mkfifo(folder / ".git" / "HEAD")
    return url


@dataclass
class WaitingIndex:
    """An index that delays its answer: for `locking` the list of versions, for `installing` the file."""

    url: str
    asked: list[str] = field(default_factory=list[str])
    go_on: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str) -> bytes:
        """Empty for a path that does not exist."""
        self.asked.append(path)
        name = path.split("/")[2].partition("-")[0]
        if name not in ("locking", "installing"):
            return b""
        if path.startswith("/simple/locking/") or (name == "installing" and path.endswith(".whl")):
            self.go_on.wait(_BOUND_S)
        wheel = f"{name}-1.0-py3-none-any.whl"
        if path.startswith("/simple/"):
            digest = hashlib.sha256(_wheel(name)).hexdigest()
            return f'<!DOCTYPE html><a href="/files/{wheel}#sha256={digest}" data-core-metadata="true">{wheel}</a>'.encode()
        return _metadata(name).encode() if path.endswith(".metadata") else _wheel(name)


def _metadata(name: str) -> str:
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"


def _wheel(name: str) -> bytes:
    packed, info = io.BytesIO(), f"{name}-1.0.dist-info"
    with zipfile.ZipFile(packed, "w") as wheel:
        files = {"METADATA": _metadata(name), "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "RECORD": ""}
        for file, text in files.items():
            wheel.writestr(zipfile.ZipInfo(f"{info}/{file}"), text)
    return packed.getvalue()


class _Handler(BaseHTTPRequestHandler):
    index: WaitingIndex

    def do_GET(self) -> None:
        content = self.index.answer(self.path.partition("?")[0])
        try:
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "text/html" if self.path.startswith("/simple/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            return  # who asked has been ended meanwhile

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def waiting_index() -> Generator[WaitingIndex]:
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    index = WaitingIndex(f"http://127.0.0.1:{server.server_address[1]}/simple")
    handler.index = index  # pyright: ignore[reportAttributeAccessIssue] - made above
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield index
    finally:
        index.go_on.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
