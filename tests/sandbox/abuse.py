"""Attempts to break out of a sandbox, and their judgement."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["EDGE", "MARK", "PRELUDE", "Attempt", "Judge", "Seen", "Verdict", "batch", "clean", "ended_for", "said", "says"]

MARK = "s3cret-"
"""Everything that nobody may get begins like this."""

PRELUDE = (
    # Not as it is, or whoever reads our own command line has found it.
    f'MARK = b"{MARK[:3]}" b"{MARK[3:]}"'
    + r"""
import ctypes, errno, json, os, resource, signal, socket, stat, struct, subprocess, sys, threading, time
T = json.loads(sys.argv[1])
NR = T["calls"]
libc = ctypes.CDLL(None, use_errno=True)
class Out(BaseException): pass
def out(what): raise Out(what)
def call(name, *given):
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in given]
    result = libc.syscall(ctypes.c_long(NR[name]), *given)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def read(path):
    with open(path, "rb") as file:
        return file.read(65536)
def tell(data):
    if MARK in data: out("a secret was read")
def write(path, text="x"):
    with open(path, "w") as file: file.write(text)
    out("written: " + path)
def each(ones, do):
    failed = None
    for one in ones:
        try: do(one)
        except OSError as error: failed = error
    if failed: raise failed
def pids():
    try: listed = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError: listed = []
    return [str(T["victim"]), *listed]
def connect(family, address, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as one:
        one.settimeout(2)
        one.connect(address)
        out("connected")
def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")
def forked(do):
    pid = os.fork()
    if pid == 0:
        try: do()
        finally: os._exit(0)
    return pid
def daemon(do):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3): os.dup2(null, fd)
            try: do()
            finally: os._exit(0)
        os._exit(0)
    os.wait()
def lasting(): os.execve("/usr/bin/sleep", ["sleep", "30" + T["token"]], {})
def verdict(what, text):
    sys.stdout.write("\nVERDICT " + json.dumps([what, text]) + "\n")
    sys.stdout.flush()
def name_of(error):
    if isinstance(error, socket.gaierror): return "no name server"
    if isinstance(error, TimeoutError) and error.errno is None: return "no answer"
    return errno.errorcode.get(error.errno or 0, "no answer")
def attempt():
    by = "no secret in it"
    try:
        exec(compile(PROGRAM, "attempt", "exec"), globals())
        by = globals().get("by", by)
    except Out as escaped: verdict("out", str(escaped))
    except OSError as error: verdict("held", name_of(error))
    except MemoryError: verdict("held", "ENOMEM")
    else: verdict("held", by)
"""
)

EDGE = "\nATTEMPT\n"
"""In what a batch writes to stdout and stderr, before what each of its attempts writes."""

_EACH = f"""
for PROGRAM in PROGRAMS:
    for stream in (sys.stdout, sys.stderr):
        stream.write({EDGE!r})
        stream.flush()
    pid = os.fork()
    if pid == 0:
        try: attempt()
        except BaseException: sys.excepthook(*sys.exc_info())
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A run from outside. `left` are processes, files and groups that outlived it; `reached` is what it reached of ours."""

    code: int
    out: str
    err: str
    cut: str | None
    seconds: float
    out_of_memory: bool = False
    disk_full: bool = False
    left: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the sandbox held, and by which means; or what got through."""

    held: bool
    by: str


Judge = Callable[[Seen], Verdict]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to break out or to do harm. `alone`: nothing else runs beside it, because it is judged by the state of the machine.

    `has_way`: it gets network access, as far as the level has one. `harms`: it is not made without a sandbox.
    """

    name: str
    program: str
    judge: Judge
    wall_s: float = 20
    alone: bool = False
    has_way: bool = False
    harms: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether other attempts may run in the same sandbox: not with its own network access, nor if it is judged by its end.

        Nor if it looks at processes: where only the first one's own folder in /proc is open, a child would see less.
        """
        return not self.alone and not self.has_way and self.judge is said and "/proc/" not in self.program

    def text(self) -> str:
        return f"PROGRAM = {self.program!r}\n{PRELUDE}attempt()\n"


def batch(attempts: Sequence[Attempt]) -> str:
    """A program that makes several attempts one after the other, each in a child process, and names each at its start."""
    return f"PROGRAMS = {[attempt.program for attempt in attempts]!r}\n{PRELUDE}{_EACH}"


_WORDS: Mapping[str, str] = {
    "EACCES": "refused (EACCES)",
    "EPERM": "refused (EPERM)",
    "ENOENT": "not there",
    "ESRCH": "no such process",
    "EROFS": "read-only",
    "ENOSYS": "no such system call",
    "EAFNOSUPPORT": "no such network",
    "ECONNREFUSED": "no listener",
    "ENETUNREACH": "no network",
    "ENOSPC": "no space left",
    "EXDEV": "another file system",
    "EAGAIN": "no more processes",
    "EMFILE": "no more files",
    "ENOMEM": "no more memory",
    "EFBIG": "file too large",
    "EINVAL": "refused (EINVAL)",
    "EIO": "refused (EIO)",
    "EADDRNOTAVAIL": "no such address",
    "EPROTONOSUPPORT": "no such protocol",
    "ENOTTY": "no terminal",
    "ENODEV": "no such device",
    "ENXIO": "no such device",
}


def said(seen: Seen) -> Verdict:
    """The program itself reports the result."""
    if broken := clean(seen):
        return broken
    if told := says(seen.out):
        return told
    return Verdict(False, f"it did not say (exit code {seen.code}, cut {seen.cut}): {seen.out[-500:]}{seen.err[-1500:]}")


def says(out: str) -> Verdict | None:
    """The program's own report; None if it did not finish."""
    for line in reversed(out.splitlines()):
        if line.startswith("VERDICT "):
            what, text = json.loads(line.removeprefix("VERDICT "))
            return Verdict(what == "held", _WORDS.get(text, text))
    return None


def clean(seen: Seen) -> Verdict | None:
    """Conditions that make any attempt a success, whatever it reports."""
    if MARK in seen.out + seen.err:
        return Verdict(False, "a secret was read")
    if told := (*seen.reached, *seen.left):
        return Verdict(False, "; ".join(told))
    return None


def ended_for(*reasons: str) -> Judge:
    """The run must be ended for one of these reasons: `time`, `stdout`, `memory`, `disk`, `signal`; or the program itself was stopped."""

    def judge(seen: Seen) -> Verdict:
        if broken := clean(seen):
            return broken
        found = {
            "time": seen.cut == "time",
            "stdout": seen.cut == "stdout",
            "memory": seen.out_of_memory,
            "disk": seen.disk_full,
            "signal": seen.cut is None and (seen.code < 0 or seen.code > 128),
        }
        texts = {
            "time": "ended when its time was over",
            "stdout": "ended for its output",
            "memory": "ended for its memory",
            "disk": "ended for its files",
            "signal": f"ended by the kernel (exit code {seen.code})",
        }
        for reason in reasons:
            if found[reason]:
                return Verdict(True, texts[reason])
        return said(seen)

    return judge
