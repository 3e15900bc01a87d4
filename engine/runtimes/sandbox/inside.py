"""The first process of a sandbox that has network or serves; runs as `python -I -S inside.py [options] -- program …`.

Standard library only, and little of it: `import socket` alone takes longer than the whole rest. Options:
`--proxy PORT SOCKET` forwards connections from 127.0.0.1:PORT to a unix socket; `--serve DOOR PORT` receives a listening socket
through the unix socket DOOR and forwards its connections to 127.0.0.1:PORT. Exits with the program's exit code, or 128 + signal.
"""

import _socket
import errno
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # without the enumerations, which take longer than all the rest

_CHUNK = 64 * 1024
_BACKLOG = 128
_MOST = 512
_KEPT_FDS = 16
_DRAIN_S = 1.0
_CONNECTING = 4
_AGAIN_S, _SELDOM_S = 0.05, 1.0
_PART_OF_WAIT = 0.1
"""A server with a full queue does not answer, and the kernel would retry after 1, 2, 4 s. So only `_CONNECTING` connections try at once,
every `_AGAIN_S` at first, and every `_SELDOM_S` once it has accepted none for long. Others wait in the listener's queue, in order.
Other listeners, such as the proxy's, are not affected."""

_LOOPBACK = "127.0.0.1"
_GROUP = 64_321
"""The group of all tools (`identity.GROUP`), by which several can write to a granted folder of the machine."""

_FOR_THE_GROUP = 0o002
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_READ, _WRITE = select.EPOLLIN, select.EPOLLOUT


def main(arguments: list[str]) -> int:
    if os.getegid() == _GROUP:
        os.umask(_FOR_THE_GROUP)
    forwarder = Forwarder()
    program = _options(arguments, forwarder)
    return Payload(program, forwarder).run()


class Side:
    """One end of a connection. `pending` holds bytes read from the other end and not yet sent here."""

    def __init__(self, socket: _socket.socket) -> None:
        self.socket, self.other = socket, self
        self.pending = b""
        self.connecting = self.read_ended = self.write_ended = False
        self.mask: int | None = None

    def wanted(self) -> int | None:
        """The events to wait for; None for none at all, not even the peer's hang-up, as nothing could be done about it yet."""
        if self.connecting:
            return _WRITE
        is_held = bool(self.other.pending) or self.other.connecting
        if is_held and not self.pending:
            return None
        return (0 if is_held or self.read_ended else _READ) | (_WRITE if self.pending else 0)


class Listener:
    """A listening socket, and the target of its connections."""

    def __init__(self, socket: _socket.socket, target: tuple[str, int] | str) -> None:
        self.socket, self.target = socket, target
        self.is_paused = False
        self.stuck_since = 0.0
        """The target has accepted no connection since, although some wait."""

    def again_at(self, asked: float) -> float:
        return asked + min(max((asked - self.stuck_since) * _PART_OF_WAIT, _AGAIN_S), _SELDOM_S)


class Forwarder:
    """Forwards connections from listening sockets to their targets."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._listening: dict[int, Listener] = {}
        self._sides: dict[int, Side] = {}
        self._connecting: dict[Side, tuple[Listener, float]] = {}
        """The listener of each connecting side, and the time of its last attempt; the longest waiting is first."""
        self._wakeup = -1
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = _MOST if files == resource.RLIM_INFINITY else max(1, min(_MOST, (files - _KEPT_FDS) // 2))

    def listen(self, socket: _socket.socket, target: tuple[str, int] | str) -> None:
        socket.setblocking(False)
        self._listening[socket.fileno()] = Listener(socket, target)
        self._poll.register(socket.fileno(), _READ)

    def wake_by(self, fd: int) -> None:
        """`step` returns when `fd` is readable."""
        self._wakeup = fd
        self._poll.register(fd, _READ)

    def step(self, timeout_s: float | None) -> bool:
        """Wait for events and handle them; returns whether there were any."""
        if self._connecting:
            next_s = self._until_next()
            timeout_s = next_s if timeout_s is None else min(timeout_s, next_s)
        events = self._poll.poll(timeout_s)
        for fd, event in events:
            if fd == self._wakeup:
                _drain(fd)
            elif fd in self._sides:
                self._serve(self._sides[fd], event)
        # Last: a new connection may reuse the number of one just closed, and must not get its events.
        for fd, _ in events:
            if fd in self._listening:
                self._accept(self._listening[fd])
        self._connect_again()
        return bool(events)

    def finish(self) -> None:
        """Accept no more connections, forward the bytes that are under way, and close all."""
        for fd, listener in self._listening.items():
            if not listener.is_paused:
                self._poll.unregister(fd)
            listener.socket.close()
        self._listening.clear()
        until = time.monotonic() + _DRAIN_S
        while self._sides and time.monotonic() < until:
            has_more = any(side.pending for side in self._sides.values())
            if not self.step(_AGAIN_S if has_more else 0) and not has_more:
                break
        for side in [*self._sides.values()]:
            self._drop(side)

    def _accept(self, listener: Listener) -> None:
        try:
            near = Side(_accepted(listener.socket))
        except OSError:
            return  # the client hung up
        far = Side(_socket_for(listener.target))
        near.other, far.other = far, near
        self._sides[near.socket.fileno()] = near
        if not self._count_connecting(listener):
            listener.stuck_since = time.monotonic()
        self._connect(far, listener)
        self._make_room()

    def _connect(self, far: Side, listener: Listener) -> None:
        code = far.socket.connect_ex(listener.target)
        far.connecting = code == errno.EINPROGRESS
        if far.connecting:
            self._connecting[far] = listener, time.monotonic()
        else:
            listener.stuck_since = time.monotonic()
        self._sides[far.socket.fileno()] = far
        if code not in (0, errno.EINPROGRESS):
            self._drop(far)
            return
        for side in (far.other, far):
            if side.socket.family == _socket.AF_INET:
                side.socket.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            self._watch(side)

    def _connect_again(self) -> None:
        if not self._connecting:
            return
        now = time.monotonic()
        for far, (listener, asked) in [*self._connecting.items()]:
            if listener.again_at(asked) <= now:
                del self._connecting[far], self._sides[far.socket.fileno()]
                far.socket.close()
                far.socket, far.mask = _socket_for(listener.target), None
                self._connect(far, listener)
        self._make_room()

    def _until_next(self) -> float:
        return max(0.0, min(listener.again_at(asked) for listener, asked in self._connecting.values()) - time.monotonic())

    def _count_connecting(self, listener: Listener) -> int:
        return sum(one is listener for one, _ in self._connecting.values())

    def _serve(self, side: Side, event: int) -> None:
        try:
            self._move(side, event)
        except OSError:
            self._drop(side)
            return
        if all(one.read_ended and not one.other.pending for one in (side, side.other)):
            self._drop(side)
            return
        for one in (side, side.other):
            self._watch(one)

    def _watch(self, side: Side) -> None:
        mask, fd = side.wanted(), side.socket.fileno()
        if mask == side.mask:
            return
        if mask is None:
            self._poll.unregister(fd)
        elif side.mask is None:
            self._poll.register(fd, mask)
        else:
            self._poll.modify(fd, mask)
        side.mask = mask

    def _move(self, side: Side, event: int) -> None:
        if side.connecting:
            if code := side.socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR):
                raise OSError(code, "no connection")
            side.connecting = False
            listener, _ = self._connecting.pop(side)
            listener.stuck_since = time.monotonic()
            self._make_room()
            return
        if event & _WRITE and side.pending:
            self._send(side)
        if event & _READ and not side.read_ended and not side.other.pending:
            self._receive(side)
        # The peer closed both directions, or the connection is broken.
        if event & select.EPOLLERR or (event & select.EPOLLHUP and side.read_ended and not side.other.pending):
            raise OSError(errno.EPIPE, "closed")

    def _receive(self, side: Side) -> None:
        try:
            chunk = side.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        if chunk:
            side.other.pending = chunk
            self._send(side.other)
        else:
            side.read_ended = True
            self._end_writing(side.other)

    def _send(self, side: Side) -> None:
        try:
            sent = side.socket.send(side.pending)
        except BlockingIOError:
            return
        side.pending = side.pending[sent:]
        self._end_writing(side)

    def _end_writing(self, side: Side) -> None:
        """Close the writing direction once the other end has closed and all its data is forwarded."""
        if side.other.read_ended and not side.pending and not side.write_ended:
            side.write_ended = True
            side.socket.shutdown(_socket.SHUT_WR)

    def _drop(self, side: Side) -> None:
        for one in (side, side.other):
            self._sides.pop(one.socket.fileno(), None)
            self._connecting.pop(one, None)
            one.socket.close()  # this also removes it from the epoll
        self._make_room()

    def _make_room(self) -> None:
        """Pause or resume listeners, so that at most `_most` connections are open; others wait in the backlog."""
        full = len(self._sides) >= 2 * self._most
        for fd, listener in self._listening.items():
            pause = full or self._count_connecting(listener) >= _CONNECTING
            if pause != listener.is_paused:
                listener.is_paused = pause
                if pause:
                    self._poll.unregister(fd)
                else:
                    self._poll.register(fd, _READ)


class Payload:
    """The program, run as a child."""

    def __init__(self, argv: list[str], forwarder: Forwarder) -> None:
        self._argv, self._forwarder = argv, forwarder
        self._pid = 0

    def run(self) -> int:
        awake, wake = os.pipe()
        os.set_blocking(awake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _only_wake_up)
        self._forwarder.wake_by(awake)
        # Blocked until there is a child to forward them to.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        for number in _PASSED_ON:
            signal.signal(number, self._pass_on)
        try:
            self._pid = os.posix_spawnp(
                self._argv[0], self._argv, _environment(), setsigmask=before, setsigdef=(*_PASSED_ON, *_IGNORED_BY_PYTHON)
            )
        except OSError as error:
            os.write(2, f"{self._argv[0]} cannot be run: {error.strerror}\n".encode())
            return 126 if error.errno == errno.EACCES else 127
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        while (code := self._ended()) is None:
            self._forwarder.step(None)
        self._forwarder.finish()
        return code

    def _pass_on(self, number: int, _: object) -> None:
        try:
            os.kill(self._pid, number)
        except ProcessLookupError:
            return

    def _ended(self) -> int | None:
        """The program's exit code once it has ended. Also reaps orphans, which the first process of a container inherits.

        A program that stops itself (SIGSTOP) is continued: nobody else would, and each of its callers would wait until its time is over.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return 1
            if pid == 0:
                return None
            if os.WIFSTOPPED(status):
                if pid == self._pid:
                    os.kill(pid, signal.SIGCONT)
            elif pid == self._pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def _options(arguments: list[str], forwarder: Forwarder) -> list[str]:
    """Open the listeners of the options; returns the program's command line."""
    while arguments and arguments[0] != "--":
        option, first, second, *arguments = arguments
        if option == "--proxy":
            listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
            listening.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            listening.bind((_LOOPBACK, int(first)))
            listening.listen(_BACKLOG)
            forwarder.listen(listening, second)
        elif option == "--serve":
            forwarder.listen(_through(first), (_LOOPBACK, int(second)))
        else:
            raise SystemExit(f"unknown option {option}")
    return arguments[1:]


def _through(door: str) -> _socket.socket:
    """Receive the listening socket. Its path exists outside only; the sandbox need not see it."""
    with_host = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    with_host.connect(door)
    _, handed, _, _ = with_host.recvmsg(1, _socket.CMSG_SPACE(4))
    with_host.close()
    if not handed:
        raise SystemExit("no socket to serve was handed over")
    fd = int.from_bytes(handed[0][2][:4], sys.byteorder)
    os.set_inheritable(fd, False)
    return _socket.socket(fileno=fd)


def _socket_for(target: tuple[str, int] | str) -> _socket.socket:
    made = _socket.socket(_socket.AF_UNIX if isinstance(target, str) else _socket.AF_INET, _socket.SOCK_STREAM)
    made.setblocking(False)
    return made


def _accepted(listening: _socket.socket) -> _socket.socket:
    accepted = _socket.socket(fileno=_descriptor(listening))
    accepted.setblocking(False)
    return accepted


def _descriptor(listening: _socket.socket) -> int:
    # Like `socket.socket.accept`.
    return listening._accept()[0]  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - not in its stub


def _environment() -> dict[bytes, bytes]:
    """Our original environment: Python may have added variables at its start (PEP 538)."""
    fd = os.open("/proc/self/environ", os.O_RDONLY)
    text = b""
    while chunk := os.read(fd, _CHUNK):
        text += chunk
    os.close(fd)
    parts = (entry.partition(b"=") for entry in text.split(b"\0"))
    return {name: value for name, equals, value in parts if equals}


def _only_wake_up(number: int, frame: object) -> None: ...


def _drain(fd: int) -> None:
    try:
        os.read(fd, _CHUNK)
    except BlockingIOError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
