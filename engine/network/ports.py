"""Free ports of this machine, and which process listens on one."""

import contextlib
import os
import socket

import psutil

LOOPBACK = "127.0.0.1"


def free_port(host: str = LOOPBACK) -> int:
    """A port that is free now. Another program may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def listens(pgid: int, port: int) -> bool:
    """Whether a process of the group listens on the port; True when that cannot be seen on this machine."""
    try:
        # Mostly its leader does; looking through all processes of the machine takes longer.
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
