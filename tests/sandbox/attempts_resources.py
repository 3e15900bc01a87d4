"""Attempts to exceed limits, and to outlive the run."""

from tests.sandbox.abuse import Attempt, ended_for, said
from toolagent.contracts.sandbox import SandboxLimits

__all__ = ["LIMITS", "RESOURCES"]

_MIB = 1024 * 1024
LIMITS = SandboxLimits(
    memory_bytes=192 * _MIB, cpus=1, processes=48, open_files=128, file_bytes=16 * _MIB, disk_bytes=24 * _MIB, output_bytes=_MIB, wall_s=20
)  # fmt: skip
"""What every attempt may use."""

_FILL = """
piece = bytes(1024 * 1024)
def fill(folder):
    total = 0
    try:
        for number in range(200):
            with open(f"{folder}/filling-{number}", "wb", buffering=0) as file:
                for _ in range(8): total += file.write(piece)
            if total > 3 * T["disk"]:
                time.sleep(8)  # whoever looks has the time to
                out(f"{total >> 20} MiB written")
    except OSError:
        raise
"""

_HARM = frozenset({
    "fork without end", "fork from every fork (a bomb)", "start threads without end", "take all memory",
    "take all memory in many processes", "keep memory in files of /dev/shm", "keep memory in files without a name",
    "fill /tmp", "fill its own folder", "fill its folder with files that have no name", "fill its folder with empty files",
    "hide files in folders too deep to count", "print a gigabyte",
})  # fmt: skip

RESOURCES = (
    *(
        Attempt(name, program, judge, alone=True, wall_s=wall_s, harms=name in _HARM)
        for name, judge, wall_s, program in (
            ("fork without end", said, 20, '''
count = 0
try:
    while count < 400:
        forked(lambda: time.sleep(60)); count += 1
except OSError as error:
    if count > T["processes"] + 8: out(f"{count} processes")
    raise
out(f"{count} processes")
'''),
            ("fork from every fork (a bomb)", ended_for("time", "signal"), 4, '''
until = time.monotonic() + 30
while time.monotonic() < until:
    try: os.fork()
    except OSError: time.sleep(0.01)
'''),
            ("start threads without end", said, 20, '''
threading.stack_size(65536)
count, done = 0, threading.Event()
try:
    while count < 400:
        threading.Thread(target=done.wait, daemon=True).start(); count += 1
except RuntimeError:
    if count > T["processes"] + 8: out(f"{count} threads")
    by = "EAGAIN"
    done.set()
else: out(f"{count} threads")
'''),
            ("take all memory", ended_for("memory", "signal"), 20, '''
kept = []
for number in range(12):
    kept.append(bytearray(64 * 1024 * 1024))
    for place in range(0, len(kept[-1]), 4096): kept[-1][place] = 1
time.sleep(8)
out("768 MiB taken")
'''),
            ("take all memory in many processes", ended_for("memory", "signal"), 20, '''
def take():
    kept = bytearray(128 * 1024 * 1024)
    for place in range(0, len(kept), 4096): kept[place] = 1
    time.sleep(10)
children = [forked(take) for _ in range(5)]
codes = [os.waitpid(child, 0)[1] for child in children]
if not any(codes): out("640 MiB taken")
by = "a part was ended by the kernel"
'''),
            ("keep memory in files of /dev/shm", ended_for("memory", "disk", "signal"), 20, _FILL + 'fill("/dev/shm")'),
            ("keep memory in files without a name", ended_for("memory", "signal"), 20, '''
kept = []
for number in range(64):
    fd = os.memfd_create("x"); kept.append(fd)
    for _ in range(15): os.write(fd, b"x" * (1024 * 1024))
time.sleep(8)
out("960 MiB kept")
'''),
            ("fill /tmp", ended_for("memory", "disk", "signal"), 30, _FILL + 'fill(os.environ.get("TMPDIR", "/tmp"))'),
            ("fill its own folder", ended_for("disk"), 30, _FILL + 'fill(T["data"])'),
            ("fill its folder with files that have no name", ended_for("disk"), 30, '''
kept = []
piece = bytes(1024 * 1024)
for number in range(8):
    fd = os.open("gone", os.O_RDWR | os.O_CREAT); os.unlink("gone"); kept.append(fd)
    for _ in range(12): os.write(fd, piece)
time.sleep(12)
out("96 MiB hidden")
'''),
            ("fill its folder with empty files", ended_for("disk"), 40, '''
for number in range(9000): open(f"empty-{number}", "w").close()
time.sleep(12)
out("9000 files made")
'''),
            ("hide files in folders too deep to count", ended_for("disk"), 40, '''
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
piece = bytes(1024 * 1024)
for number in range(60):
    with open(f"hidden-{number}", "wb", buffering=0) as file: file.write(piece)
time.sleep(12)
out("60 MiB hidden")
'''),
            ("write one huge file", ended_for("signal", "disk"), 20, '''
with open("huge", "wb", buffering=0) as file:
    for _ in range(20): file.write(bytes(1024 * 1024))
out("20 MiB in one file")
'''),
            ("make one huge file with holes", ended_for("signal"), 20, '''
with open("sparse", "wb") as file: os.truncate(file.fileno(), 1 << 40)
out("1 TiB")
'''),
            ("open files without end", said, 20, '''
opened = []
try:
    for _ in range(2000): opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    if len(opened) > T["files"]: out(f"{len(opened)} files")
    for fd in opened[-8:]: os.close(fd)
    raise
out(f"{len(opened)} files")
'''),
            ("use every processor", said, 20, '''
def spin():
    until = time.monotonic() + 3
    while time.monotonic() < until: pass
for child in [forked(spin) for _ in range(4)]: os.waitpid(child, 0)
used = sum(os.times()[2:4]) / 3
if used > 1.35: out(f"{used:.1f} processors")
by = "no more than one processor"
'''),
            ("use every processor, having asked for them", said, 20, '''
def spin():
    try: os.sched_setaffinity(0, range(os.cpu_count()))
    except OSError: pass
    until = time.monotonic() + 3
    while time.monotonic() < until: pass
for child in [forked(spin) for _ in range(4)]: os.waitpid(child, 0)
used = sum(os.times()[2:4]) / 3
if used > 1.35: out(f"{used:.1f} processors")
by = "no more than one processor"
'''),
            ("print a gigabyte", ended_for("stdout"), 30, '''
piece = b"x" * 1048576
for _ in range(1024): os.write(1, piece)
out("printed")
'''),
            ("sleep for ever", ended_for("time"), 2, 'time.sleep(1000)'),
            ("sleep for ever, deaf to signals", ended_for("time"), 2, '''
for number in range(1, 32):
    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)
while True: time.sleep(1000)
'''),
            ("stop itself", ended_for("time"), 2, 'os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1000)'),
            ("leave a core dump", ended_for("signal"), 20, '''
try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))
except (ValueError, OSError): pass
os.abort()
'''),
            ("leave a daemon", said, 20, 'daemon(lasting); by = "ended with its run"'),
            ("leave a daemon when its time is over", ended_for("time"), 2, 'daemon(lasting); time.sleep(1000)'),
            ("leave daemons that beget daemons", ended_for("time", "signal"), 2, '''
def beget():
    for _ in range(10): daemon(lasting); time.sleep(0.05)
daemon(beget); daemon(beget); time.sleep(1000)
'''),
            ("leave a daemon that writes later", said, 20, '''
open("soon", "w").close()
def later():
    time.sleep(1.5); open(T["data"] + "/later", "w").write(T["token"])
daemon(later)
by = "ended with its run"
'''),
            ("leave shared memory (System V)", said, 20, '''
id = call("shmget", 0x5EC12E7, 4096, 0o1666)
by = "gone with its namespace"
'''),
            ("leave a message queue", said, 20, '''
call("mq_open", b"planted", os.O_CREAT | os.O_RDWR, 0o600, None)
by = "gone with its namespace"
'''),
            ("leave a file in /dev/shm", said, 20, '''
with open("/dev/shm/planted-" + T["token"], "w") as file: file.write("x")
by = "gone with the sandbox"
'''),
            ("leave a file in /tmp", said, 20, '''
with open("/tmp/planted-" + T["token"], "w") as file: file.write("x")
by = "gone with the sandbox"
'''),
            ("leave a folder without the right to remove it", said, 20, '''
scratch = os.environ.get("TMPDIR", "/tmp") + "/planted-" + T["token"]
os.makedirs(scratch + "/a/b/c"); open(scratch + "/a/b/c/d", "w").close()
for folder in ("/a/b/c", "/a/b", "/a", ""): os.chmod(scratch + folder, 0)
by = "gone with the sandbox"
'''),
            ("leave a setuid program", said, 20, '''
with open("/usr/bin/true", "rb") as true, open("planted", "wb") as file: file.write(true.read())
os.chmod("planted", 0o4755)
by = "its owner has no rights"
'''),
            ("leave a setuid file that had no name", said, 20, '''
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755)
os.link(f"/proc/self/fd/{fd}", "planted", src_dir_fd=fd, follow_symlinks=True)
by = "its owner has no rights"
'''),
        )
    ),
)  # fmt: skip
