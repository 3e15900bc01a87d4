"""Targets of attempts: files, sockets and processes of the worker's user."""

import asyncio
import contextlib
import os
import random
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyseccomp

from bench.processes import is_free
from engine.network.ports import free_port
from tests.sandbox.abuse import MARK

__all__ = ["Victims", "victims"]

_CALLS = (
    "unshare", "clone", "clone3", "setns", "mount", "fsopen", "open_tree", "umount2", "pivot_root", "ptrace", "process_vm_readv",
    "pidfd_open", "pidfd_getfd",
    "kcmp", "add_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "fanotify_init", "personality",
    "init_module", "kexec_load", "reboot", "sethostname", "swapon", "syslog", "iopl", "capset", "prlimit64", "name_to_handle_at",
    "open_by_handle_at", "shmget", "mq_open",
)  # fmt: skip
_SITTING = """
import signal, sys, time
signal.signal(signal.SIGURG, lambda *_: open(sys.argv[1], "w").close())
print("sits", flush=True)
while True: time.sleep(1000)
"""
_FILES_SOFT = 512


@dataclass(slots=True)
class Victims:
    """`told` is what an attempt knows of the target."""

    state: Path
    told: Mapping[str, object]
    process: subprocess.Popen[bytes]
    squat: int
    outside: tuple[Path, ...]

    def reached(self) -> tuple[str, ...]:
        """What was done to them; reported once."""
        found: list[str] = []
        if self.process.poll() is not None:
            found.append("a process of the machine was ended")
        signalled = self.state / "signalled"
        if signalled.exists():
            signalled.unlink()
            found.append("a process of the machine got a signal")
        with contextlib.suppress(psutil.Error):
            if psutil.Process(self.process.pid).rlimit(psutil.RLIMIT_NOFILE)[0] < _FILES_SOFT:
                found.append("the limits of a process of the machine were changed")
                psutil.Process(self.process.pid).rlimit(psutil.RLIMIT_NOFILE, (_FILES_SOFT, 1024))
        return tuple(found)

    async def is_served_by_somebody(self) -> bool:
        """Whether a program serves the port that should be unused."""
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", self.squat)
            writer.close()
            return True
        return False


@contextlib.asynccontextmanager
async def victims(state: Path) -> AsyncGenerator[Victims]:
    """`state` is an empty folder."""
    secret = (MARK + secrets.token_hex(8)).encode()
    files = _written(state, secret)
    name = "ta-" + secrets.token_hex(4)
    outside = Path("/tmp", name), Path("/dev/shm", name)  # noqa: S108 - where others look
    for path in outside:
        path.write_bytes(secret)
    sitting = subprocess.Popen(  # noqa: ASYNC220 - while nothing else runs
        [sys.executable, "-I", "-S", "-c", _SITTING, str(state / "signalled"), secret.decode()],
        env={"SECRET": secret.decode()}, stdout=subprocess.PIPE,
    )  # fmt: skip
    psutil.Process(sitting.pid).rlimit(psutil.RLIMIT_NOFILE, (_FILES_SOFT, 1024))
    open_folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(open_folder, True)  # as libraries that are not Python's may leave theirs
    try:
        assert sitting.stdout is not None
        assert await asyncio.to_thread(sitting.stdout.readline) == b"sits\n"
        async with contextlib.AsyncExitStack() as stack:
            network = await _served(state, name, secret, stack)
            told = {
                **{key: str(path) for key, path in files.items()},
                **network,
                "state": str(state),
                "calls": {call: pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, call) for call in _CALLS},
                "tmp": str(outside[0]),
                "shared_memory": str(outside[1]),
                "victim": sitting.pid,
                "squat": (squat := _unlikely_port()),
            }
            yield Victims(state, told, sitting, squat, outside)
    finally:
        os.close(open_folder)
        sitting.kill()
        sitting.wait()
        if sitting.stdout is not None:
            sitting.stdout.close()
        for path in outside:
            path.unlink(missing_ok=True)


def _written(state: Path, secret: bytes) -> dict[str, Path]:
    files = {
        "secrets": state / "secrets.json",
        "database": state / "tool-agent.db",
        "other_tool": state / "tools" / "other" / "home" / "notes.txt",
    }
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(secret)
    files["secrets"].chmod(0o600)
    for own in ("project", "environment"):
        (state / own).mkdir()
        (state / own / "main.py").write_text("pass\n")
    return {**files, "project": state / "project", "environment": state / "environment"}


async def _served(state: Path, name: str, secret: bytes, stack: contextlib.AsyncExitStack) -> dict[str, object]:
    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(secret)
        writer.close()

    port, udp = free_port(), free_port()
    path = state / "r" / "proxy.sock"
    path.parent.mkdir(mode=0o700)
    hosts = ["0.0.0.0", *(["::"] if socket.has_ipv6 and _has_ipv6() else [])]  # noqa: S104 - what is to be reached
    stack.push_async_callback(_closed, await asyncio.start_server(tell, hosts, port))
    stack.push_async_callback(_closed, await asyncio.start_unix_server(tell, path))
    stack.push_async_callback(_closed, await asyncio.start_unix_server(tell, "\0" + name))

    class Answering(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.DatagramTransport) -> None:
            self._transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002 - as asyncio calls it
            self._transport.sendto(secret, addr)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Answering, ("127.0.0.1", udp))
    stack.callback(transport.close)
    return {"port": port, "udp": udp, "socket": str(path), "abstract": name, "addresses": _addresses()}


async def _closed(server: asyncio.Server) -> None:
    server.close()


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return True
    return False


def _addresses() -> list[str]:
    """The addresses of this machine other than the loopback."""
    found = (one.address for several in psutil.net_if_addrs().values() for one in several if one.family == socket.AF_INET)
    return sorted(address for address in found if not address.startswith("127."))[:2]


def _unlikely_port() -> int:
    """A free port below those that the system assigns: only an attempt serves it."""
    return next(port for port in random.sample(range(20_000, 30_000), 100) if is_free(port))
