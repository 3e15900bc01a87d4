"""Attempts on the kernel, on other processes, and to become another user."""

from tests.sandbox.abuse import Attempt, ended_for, said

__all__ = ["KERNEL"]

_NEW = {"user": 0x10000000, "mount": 0x00020000, "network": 0x40000000, "process": 0x20000000}

KERNEL = (
    *(Attempt(f"make a {name} namespace", f'call("unshare", {flag}); out("made")', said) for name, flag in _NEW.items()),
    *(
        Attempt(name, program, said)
        for name, program in (
            ("clone into a user namespace", f'''
pid = call("clone", {_NEW["user"]} | 17, 0, 0, 0, 0)
if pid == 0: os._exit(0)
out("cloned")
'''),
            ("clone into a user namespace by clone3", f'''
arguments = ctypes.create_string_buffer(struct.pack("=8Q", {_NEW["user"]}, 0, 0, 0, 17, 0, 0, 0))
pid = call("clone3", arguments, 64)
if pid == 0: os._exit(0)
out("cloned")
'''),
            ("enter the namespaces of others", '''
def enter(path):
    with open(path) as file: call("setns", file.fileno(), 0)
    out("entered")
each([f"/proc/{pid}/ns/{kind}" for pid in pids() for kind in ("mnt", "net", "user", "pid")], enter)
'''),
            ("mount a file system", 'call("mount", b"none", T["data"].encode(), b"tmpfs", 0, None); out("mounted")'),
            ("mount by the newer calls", 'call("fsopen", b"tmpfs", 0); out("opened")'),
            ("copy a tree of mounts", 'call("open_tree", -100, b"/", 1); out("copied")'),
            ("unmount what covers", 'call("umount2", b"/proc", 2); out("unmounted")'),
            ("exchange the root", 'call("pivot_root", b".", b"."); out("exchanged")'),
            ("chroot, and climb", 'os.chroot("."); out("changed")'),
            ("trace another process", 'call("ptrace", 16, T["victim"], 0, 0); out("attached")'),
            ("read another process's memory", '''
buffer = ctypes.create_string_buffer(8)
local = struct.pack("=QQ", ctypes.addressof(buffer), 8); remote = struct.pack("=QQ", 0x400000, 8)
try: call("process_vm_readv", T["victim"], local, 1, remote, 1, 0)
except OSError as error:
    if error.errno != errno.EFAULT: raise
out("read")
'''),
            ("write another process's memory", 'os.open("/proc/%d/mem" % T["victim"], os.O_RDWR); out("opened")'),
            ("take over a process that is allowed more", '''
def allowed_more(pid):
    lines = dict(line.split(":\\t", 1) for line in read(f"/proc/{pid}/status").decode().splitlines() if ":\\t" in line)
    return lines["Seccomp"] == "0" or int(lines["CapEff"], 16)
def take(pid):
    if allowed_more(pid):
        os.open(f"/proc/{pid}/mem", os.O_RDWR); out("opened the memory of process " + pid)
by = "there is none"
each(pids(), take)
'''),
            ("take another process's descriptors", '''
opened = call("pidfd_open", T["victim"], 0)
call("pidfd_getfd", opened, 0, 0)
out("taken")
'''),
            ("compare with another process", 'call("kcmp", os.getpid(), T["victim"], 1, 0, 0); out("compared")'),
            ("use the kernel's keyring", 'call("add_key", b"user", b"planted", b"x", 1, -4 & 0xFFFFFFFF); out("added")'),
            ("read the session's keyring", 'call("keyctl", 0, -3, 0, 0, 0); out("read")'),
            ("load a program into the kernel (bpf)", 'call("bpf", 5, ctypes.create_string_buffer(128), 128); out("loaded")'),
            ("watch the processor (perf)", '''
call("perf_event_open", ctypes.create_string_buffer(struct.pack("=IIQ", 1, 112, 0) + bytes(96)), 0, -1, -1, 0); out("opened")
'''),
            ("handle page faults (userfaultfd)", 'call("userfaultfd", 1); out("opened")'),
            ("use io_uring", 'call("io_uring_setup", 4, ctypes.create_string_buffer(120)); out("set up")'),
            ("watch the file system (fanotify)", 'call("fanotify_init", 0, 0); out("opened")'),
            ("type into a terminal (TIOCSTI)", '''
import fcntl
main, sub = os.openpty()
fcntl.ioctl(sub, 0x5412, b"x"); out("typed")
'''),
            ("switch off randomised addresses", 'call("personality", 0x0040000); out("switched")'),
            ("load a module", 'call("init_module", b"x", 1, b""); out("loaded")'),
            ("load another kernel", 'call("kexec_load", 0, 0, 0, 0); out("loaded")'),
            ("restart the machine", 'call("reboot", 0, 0, 0, 0); out("reached the magic numbers")'),
            ("set the clock", 'time.clock_settime(time.CLOCK_REALTIME, time.time()); out("set")'),
            ("change the machine's name", 'call("sethostname", b"planted", 7); out("changed")'),
            ("swap onto a file", 'write_ = open("swap", "wb").write(bytes(8192)); call("swapon", b"swap", 0); out("on")'),
            ("read the kernel's log", 'call("syslog", 3, ctypes.create_string_buffer(4096), 4096); out("read")'),
            ("speak to ports of the hardware", 'call("iopl", 3); out("allowed")'),
            ("become root", '''
try: os.setresuid(0, 0, 0)
except OSError as error:
    if error.errno != errno.EINVAL: raise
    by = "there is no root in it"
else: out("root")
'''),
            ("take other groups", 'os.setgroups([0, 42]); out("taken")'),
            ("have any capability", '''
for line in read("/proc/self/status").decode().splitlines():
    if line.startswith(("CapEff", "CapPrm", "CapInh", "CapAmb")) and int(line.split()[1], 16): out(line)
by = "none"
'''),
            ("take capabilities", '''
call("capset", struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", *[0xFFFFFFFF] * 6)); out("taken")
'''),
            ("become root by su", '''
code, text = run("/usr/bin/su", "-s", "/bin/sh", "-c", "id -u; cat /etc/shadow")
if code == 0: out("su ran")
by = "su: " + text.strip().rpartition(": ")[2].lower()
'''),
            ("mount by the setuid program", '''
code, text = run("/usr/bin/mount", "-t", "tmpfs", "none", T["data"])
if code == 0: out("mounted")
by = "mount: " + text.strip().splitlines()[0].rpartition(": ")[2]
'''),
            ("gain by a setuid program of any kind", '''
if "NoNewPrivs:\\t1" not in read("/proc/self/status").decode(): out("new privileges are possible")
by = "no new privileges"
'''),
            ("raise its limit of open files", '''
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
try: resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
except ValueError: raise OSError(errno.EPERM, "")
out("raised")
'''),
            ("get ahead of others (nice, real time)", '''
def first(): os.nice(-10); out("nicer")
def second(): os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)); out("real time")
each((first, second), lambda do: do())
'''),
            ("see the environment of the worker", '''
known = {"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE", "PWD", "HOSTNAME", "TOOL_AGENT_OWNER", "TOOL_AGENT_RUN"}
if strange := set(os.environ) - known: out(" ".join(sorted(strange)))
tell(repr(dict(os.environ)).encode())
by = "only its own"
'''),
            ("see other processes", '''
mine = {os.getpid(), os.getppid(), 1, 2}
if strange := [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in mine]: out("saw " + str(len(strange)))
by = "only its own"
'''),
        )
    ),
    *(
        Attempt(name, program, judge, alone=True, harms=name == "kill what keeps it")
        for name, judge, program in (
            ("send a signal to the machine's processes", said, 'os.kill(T["victim"], signal.SIGURG); by = "it reached none of ours"'),
            ("send a signal to every process", said, '''
signal.signal(signal.SIGURG, signal.SIG_IGN)
os.kill(-1, signal.SIGURG)
by = "it reached none of ours"
'''),
            ("change another process's limits", said, '''
call("prlimit64", T["victim"], 7, struct.pack("=QQ", 3, 3), 0)
by = "it reached none of ours"
'''),
            ("kill what keeps it", ended_for("signal"), '''
def kill(pid): os.kill(pid, signal.SIGKILL)
daemon(lasting)
each((os.getppid(), 1), kill)
time.sleep(1)
by = "it was not killed"
'''),
        )
    ),
)  # fmt: skip
