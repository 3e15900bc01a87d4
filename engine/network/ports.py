"""Ports of this machine: free ones, and whether a process listens on one."""

import contextlib
import os
import secrets
import socket

import psutil

LOOPBACK = "127.0.0.1"
_FIRST, _END = 10_000, 32_768
"""By default Linux gives the ports from 32,768 on to outgoing connections, and to whoever asks for any port."""
_TRIES = 100


def free_port(host: str = LOOPBACK) -> int:
    """A port that is free now, from a range in which none is taken by chance before the caller does."""
    for _ in range(_TRIES):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, _FIRST + secrets.randbelow(_END - _FIRST)))
            return int(probe.getsockname()[1])
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def listens(pgid: int, port: int) -> bool:
    """Whether a process of the group listens on the port; True if this machine does not show it."""
    try:
        # First the leader, which usually listens: looking through all processes takes longer.
        with contextlib.suppress(psutil.NoSuchProcess):
            if _listens(psutil.Process(pgid), port):
                return True
        members = [process for process in psutil.process_iter() if _is_in(process, pgid)]
        return any(_listens(process, port) for process in members)
    except psutil.AccessDenied:
        return True


def _is_in(process: psutil.Process, pgid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.getpgid(process.pid) == pgid
    return False


def _listens(process: psutil.Process, port: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        found = process.net_connections("tcp")
        return any(one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port for one in found)
    return False
