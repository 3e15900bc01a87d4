"""Drops rights and executes a program; runs as `python -I -S confine.py ORDER GO ALIVE [FILTER]`.

Standard library only. The arguments are descriptors: of a JSON object that `rlimits` writes, of a pipe whose first byte starts the
program, of a pipe that ends with the run, and of a system call filter. There are three processes: the launched one; the keeper, in its
own session, which ends everything once the program or the launched process has ended; and the program.

`confine.py --filtered FILE PROGRAM …` only installs a filter and executes a program.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import stat
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_REFUSED, _NOT_BEGUN, _KILLED = 126, 125, 137
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION = 1
_BENEATH, _PORT = 1, 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 36, 38
_FILTER = 2
_FILTERED = "--filtered"
_CAPABILITIES = 64
_MOST_FDS = 2**31 - 1

# Rights of Landlock (linux/landlock.h), and the versions that introduced them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_FIRST = (1 << 13) - 1
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_NETWORK_SINCE, _BIND, _CONNECT = 4, 1, 2
_SCOPES_SINCE, _SCOPES = 6, 3  # abstract unix sockets, signals
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = (_FIRST | _REFER | _TRUNCATE) & ~(_MAKE_CHAR | _MAKE_BLOCK)
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL

_OF_ITSELF = ("cmdline", "comm", "environ", "fd", "limits", "maps", "stat", "statm", "status")
"""Files of /proc/PID that the program may read; others there show the machine's network."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: Sequence[str]) -> int:
    if arguments[0] == _FILTERED:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _filter(Path(arguments[1]).read_bytes())
        os.execv(arguments[2], tuple(arguments[2:]))  # noqa: S606 - that is what we are for
    # Die with the launcher. If it is gone already, no byte to start arrives.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    order, go, *rest = (int(fd) for fd in arguments)
    said: dict[str, Any] = json.loads(_all(order))
    rules = _all(rest[1]) if len(rest) > 1 else b""
    if not os.read(go, 1):
        return _NOT_BEGUN  # the launcher is gone
    launched = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        os._exit(_kept(said, rules, launched))
    return _code(os.waitpid(keeper, 0)[1])


def abi() -> int:
    """The kernel's version of Landlock; 0 if there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)))


def _kept(order: Mapping[str, Any], rules: bytes, launched: int) -> int:
    """Run the program. When it ends, or when signalled, end everything that it started."""
    signals = {signal.SIGCHLD, signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != launched:
        return _KILLED
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    environment = {name: os.environ[name] for name in order["marks"] if name in os.environ}  # noqa: TID251 - of this program, not of ours
    _forget_environment()
    program = os.fork()
    if program == 0:
        _become(order, rules, environment, signals)
    # Prevents programs of the same user from inspecting this process.
    _prctl(_PR_SET_DUMPABLE, 0)
    code = None
    while code is None:
        code = _KILLED if signal.sigwait(signals) == signal.SIGUSR1 else _ended(program)
    _end_all()
    return code


def _ended(program: int) -> int | None:
    """Reap ended children; returns the program's exit code, if it was among them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return None
        if pid == program:
            return _code(status)


def _end_all() -> None:
    """Kill all descendants. Orphans become our children, so all have ended once there are none."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in _descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process that is gone has no children.
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_bytes()
                children.setdefault(int(text.rpartition(b")")[2].split()[1]), []).append(int(entry.name))
    found = list(children.get(root, ()))
    for pid in found:  # grows during the loop
        found += children.get(pid, ())
    return found


def _forget_environment() -> None:
    """Clear our environment, so that a search for the run's mark finds the program only."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    begin, end = int(fields[47]), int(fields[48])
    if begin:
        ctypes.memset(begin, 0, end - begin)


def _become(order: Mapping[str, Any], rules: bytes, marks: Mapping[str, str], blocked: set[signal.Signals]) -> None:
    """Does not return."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        for which, bound in order["bounds"]:
            resource.setrlimit(which, (bound, bound))
        if order["processors"]:
            os.sched_setaffinity(0, order["processors"])
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        # Open the files with the current rights; the ruleset is applied after the change of user.
        ruleset = _ruleset(order["landlock"]) if order["landlock"] else None
        if order["user"]:
            _drop_to(*order["user"])
        os.chdir(order["folder"])
        if ruleset is not None:
            _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
        os.closerange(3, _MOST_FDS)
        if rules:
            _filter(rules)
        argv: list[str] = order["argv"]
        os.execvpe(argv[0], argv, {**order["environment"], **marks})  # noqa: S606 - that is what we are for
    except OSError as error:
        os.write(2, f"confine: {error.filename or error.strerror}: {error}\n".encode())
    finally:
        os._exit(_REFUSED)


def _drop_to(uid: int, gid: int) -> None:
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for unknown ones
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _ruleset(wanted: Mapping[str, Any]) -> int:
    version = min(abi(), wanted["abi"])
    files = _FIRST | sum(right for since, right in _SINCE.items() if version >= since)
    network = _BIND | _CONNECT if version >= _NETWORK_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", files, network, scopes)
    # An older kernel knows fewer fields, and requires the others to be zero, which they are.
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock_create_ruleset")
    for right, paths in (
        (_READ, (*wanted["read"], *(f"/proc/{os.getpid()}/{name}" for name in _OF_ITSELF))),
        (_WRITE, wanted["write"]),
        (_DEVICE, wanted["devices"]),
    ):
        _allow_beneath(ruleset, right & files, paths)
    for port in wanted["ports"] if network else ():
        rule = struct.pack("=QQ", network, port)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PORT, rule, 0), f"landlock_add_rule of port {port}")
    return ruleset


def _allow_beneath(ruleset: int, rights: int, paths: Iterable[str]) -> None:
    for path in paths:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if stat.S_ISDIR(os.fstat(opened).st_mode) else rights & _OF_FILES
            _checked(_libc.syscall(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", allowed, opened), 0), f"landlock_add_rule of {path}")
        finally:
            os.close(opened)


def _filter(rules: bytes) -> None:
    text = ctypes.create_string_buffer(rules, len(rules))
    program = struct.pack("@HP", len(rules) // 8, ctypes.addressof(text))
    _checked(_libc.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0), "seccomp")


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
    return result


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
