"""Attempts on files: the machine's, the worker's, other tools', and the program's own read-only ones."""

from tests.sandbox.abuse import Attempt, said

__all__ = ["FILES"]

FILES = tuple(
    Attempt(name, program, said)
    for name, program in (
        ("read the machine's password hashes", 'if read("/etc/shadow"): out("read")'),
        ("list the home of root", '''
# Where Python lies there, the way to it is seen.
own = {os.path.relpath(sys.base_prefix, "/root").split("/")[0]}
if set(os.listdir("/root")) - own: out("listed")
by = "nothing of it"
'''),
        ("list the homes of people", 'by = "empty"\nif os.listdir("/home") not in ([], ["tool"]): out("listed")'),
        ("read the store's database", 'tell(read(T["database"]))'),
        ("read the worker's secrets", 'tell(read(T["secrets"]))'),
        ("list the state directory", '''
if "secrets.json" in os.listdir(T["state"]): out("listed")
by = "its own alone"
'''),
        ("read another tool's files", 'tell(read(T["other_tool"]))'),
        ("write into another tool's folder", 'write(os.path.dirname(T["other_tool"]) + "/planted")'),
        ("take another tool's files", 'os.rename(T["other_tool"], T["data"] + "/taken"); out("taken")'),
        ("delete another tool's files", 'os.unlink(T["other_tool"]); out("deleted")'),
        ("empty another tool's file", 'os.truncate(T["other_tool"], 0); out("emptied")'),
        ("open up the mode of another's file", 'os.chmod(T["secrets"], 0o666); out("changed")'),
        ("read the machine's /tmp", 'tell(read(T["tmp"]))'),
        ("read the machine's shared memory", 'tell(read(T["shared_memory"]))'),
        ("read the environment of process 1", 'tell(read("/proc/1/environ"))'),
        ("read every process's environment", 'each(pids(), lambda pid: tell(read(f"/proc/{pid}/environ")))'),
        ("read every process's command line", 'each(pids(), lambda pid: tell(read(f"/proc/{pid}/cmdline")))'),
        ("walk into other processes' roots", 'each(pids(), lambda pid: tell(read(f"/proc/{pid}/root" + T["secrets"])))'),
        ("walk into other processes' folders", '''
up = "../" * 20 + T["secrets"].lstrip("/")
each(pids(), lambda pid: tell(read(f"/proc/{pid}/cwd/{up}")))
'''),
        ("reach out through descriptors left open", '''
for fd in range(3, 64):
    try: link = os.readlink(f"/proc/self/fd/{fd}")
    except OSError: continue
    if stat.S_ISDIR(os.fstat(fd).st_mode) and not link.startswith("/proc"): out("a folder: " + link)
    if not link.startswith(("/proc", "/dev/null")): out("a descriptor: " + link)
by = "none is open"
'''),
        ("follow a symbolic link out of its folder", 'os.symlink(T["secrets"], "link"); tell(read("link"))'),
        ("hard-link another's file into its folder", 'os.link(T["secrets"], "linked"); tell(read("linked"))'),
        ("climb out of its folder by ..", 'tell(read(T["data"] + "/../state/" + os.path.basename(T["secrets"])))'),
        ("make a device of the machine's disk", '''
def device(kind):
    os.mknod("disk", 0o600 | kind[0], os.makedev(*kind[1:])); open("disk", "rb").read(1); out("read")
each(((stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 1, 1)), device)
'''),
        ("read the disk, the memory, the kernel's log", '''
def first(path):
    with open(path, "rb") as file:
        if file.read(1): out("read: " + path)
each(("/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mem", "/dev/kmsg", "/proc/kcore", "/dev/port"), first)
'''),
        ("list the machine's devices", '''
known = set("null zero full random urandom tty console pts ptmx shm fd stdin stdout stderr core mqueue".split())
if more := set(os.listdir("/dev")) - known: out("there are " + " ".join(sorted(more)[:3]))
by = "only the harmless ones"
'''),
        ("write among the machine's programs", 'write("/usr/bin/planted")'),
        ("write /etc/passwd", 'write("/etc/passwd")'),
        ("have a library loaded into every program", 'write("/etc/ld.so.preload", "/tmp/x.so")'),
        ("write into the root", 'write("/planted")'),
        ("write into /dev", 'write("/dev/planted")'),
        ("name a program for core dumps", 'write("/proc/sys/kernel/core_pattern", "|/tmp/x")'),
        ("press SysRq", 'write("/proc/sysrq-trigger", "h")'),
        ("write to the kernel's settings in /sys", 'write("/sys/kernel/mm/transparent_hugepage/enabled", "always")'),
        ("register a format of programs", 'write("/proc/sys/fs/binfmt_misc/register", ":x:E::x::/bin/sh:")'),
        ("raise its own limits in the control group", '''
def raised(path):
    with open(path, "w") as file: file.write("1000")
    out("raised")
found = [f"{folder}/{file}" for folder, _, files in os.walk("/sys/fs/cgroup") for file in files if file in ("pids.max", "cgroup.procs")]
each(found[:200] or ["/sys/fs/cgroup/pids.max"], raised)
'''),
        ("write into its own project", 'write(T["project"] + "/main.py")'),
        ("add to its own project", 'write(T["project"] + "/planted.py")'),
        ("make its project writable", 'os.chmod(T["project"] + "/main.py", 0o777); out("changed")'),
        ("write into its environment", 'write(T["environment"] + "/planted.pth")'),
        ("write into the interpreter's library", 'write(os.path.dirname(os.__file__) + "/planted.py")'),
        ("remount what is read-only", '''
call("mount", None, T["project"].encode(), None, 4096 | 32, None)
write(T["project"] + "/main.py")
'''),
        ("open a file by its handle", '''
handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128)); mount = ctypes.c_int()
call("name_to_handle_at", -100, T["data"].encode(), handle, ctypes.byref(mount), 0)
here = os.open(T["data"], os.O_RDONLY)
call("open_by_handle_at", here, handle, os.O_RDONLY)
out("opened")
'''),
        ("read the key files of services in /run", '''
def found(path): tell(read(path)); out("read " + path)
tops = ("/run", "/var/lib", "/srv", "/opt")
paths = [os.path.join(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names]
paths = [path for path in paths if os.path.isfile(path) and not path.startswith(("/run/tool-agent", T["environment"], T["project"]))]
by = "nothing there"
each(paths[:200], found)
'''),
    )
)  # fmt: skip
