"""The ssh client for git in the sandbox: connects git's streams to the real client outside, through the socket beside this file.

Standard library only. Ignores git's host and command, because the target was decided outside.
"""

import os
import socket
import sys
import threading

_CHUNK = 64 * 1024


def main(program: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as outside:
        outside.connect(f"{program}.sock")
        threading.Thread(target=_send, args=(outside,), daemon=True).start()
        while chunk := outside.recv(_CHUNK):
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(1, rest) :]
    return 0


def _send(outside: socket.socket) -> None:
    try:
        while chunk := os.read(0, _CHUNK):
            outside.sendall(chunk)
        outside.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side is gone, which the reader sees too


if __name__ == "__main__":
    try:
        code = main(sys.argv[0])
    except OSError:
        code = 255
    # The sender may still wait for git.
    os._exit(code)
