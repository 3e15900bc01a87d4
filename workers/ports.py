"""Listening sockets, with plain messages about taken ports."""

import errno
import socket

from workers.failures import CannotRun


def listen(host: str, port: int, setting: str) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises CannotRun naming the setting."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise CannotRun(_why(host, port, setting, error)) from error
    return listener


def require_free(host: str, port: int, setting: str) -> None:
    """Raises CannotRun if the port is taken."""
    listen(host, port, setting).close()


def url_of(listener: socket.socket) -> str:
    """The URL of an HTTP server on this socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _why(host: str, port: int, setting: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken by another program. Stop it, or set {setting} to another port (0 takes a free one)."
    return f"Cannot listen on {host}:{port} ({error.strerror}). Set {setting}."
