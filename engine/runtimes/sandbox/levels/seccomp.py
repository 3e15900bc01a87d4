"""The filter of system calls for sandboxed programs."""

import errno
import functools
import os
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import pyseccomp

from engine.runtimes.sandbox.levels.holding import memory_file

T = TypeVar("T")

_REFUSED = (
    # namespaces and mounts: the sandbox itself
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
    # other processes, keys and the kernel's own machinery
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "add_key", "request_key", "keyctl", "bpf", "perf_event_open",
    "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "lookup_dcookie", "fanotify_init", "vmsplice",
    # the machine
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "quotactl",
    "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog", "iopl", "ioperm",
    "nfsservctl", "vhangup", "personality",
)  # fmt: skip
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_MODES_OF_NEW = {"open": (2, 1), "openat": (3, 2)}
"""The positions of the mode and of the flags."""
_MAKING = (os.O_CREAT, os.O_TMPFILE & ~os.O_DIRECTORY)
"""The mode matters only with one of these flags. A file made by O_TMPFILE can get a name later."""
_AS_ANOTHER = (stat.S_ISUID, stat.S_ISGID)
_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET} and NEWTIME
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_FAMILIES = (socket.AF_UNIX, *_INTERNET, socket.AF_NETLINK)
_HIGHEST_FAMILY = 64

# For programs without namespaces: calls that reach the machine's network and processes.
_SHARED = (
    "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
)  # fmt: skip
_OF_ANOTHER = {
    "prlimit64": 0, "setpriority": 1, "ioprio_set": 1, "sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0,
    "sched_setattr": 0,
}  # fmt: skip
"""The position of the argument that names the process; 0 is the caller."""
_SENDING = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""The position of the flags."""
_MSG_FASTOPEN = 0x20000000
_TYPE_BITS = 0xF
_OTHER_TYPES = (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM, socket.SOCK_SEQPACKET, 6, 10)
"""All types except streams, which Landlock can restrict; 6 is DCCP, 10 the old packet sockets."""


def filter_fd(*, is_apart: bool = True, named_sockets: bool = True, is_pinned: bool = False) -> int:
    """A descriptor with the filter in the kernel's form; read it once and close it. Raises OSError without libseccomp.

    `is_apart`: the program has its own namespaces; without them it can open TCP sockets only, and unix sockets with a name
    only with `named_sockets`.
    `is_pinned`: it must stay on its given processors.
    """
    return memory_file("seccomp", _compiled(is_apart, named_sockets, is_pinned))


@functools.cache
def _compiled(is_apart: bool, named_sockets: bool, is_pinned: bool) -> bytes:
    deny = pyseccomp.ERRNO(errno.EPERM)
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in _REFUSED:
        if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) >= 0:
            rules.add_rule(deny, name)
    for flag in (1 << bit for bit in range(32) if _NAMESPACES >> bit & 1):
        rules.add_rule(deny, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    # Its flags are in memory, which a filter cannot read; C libraries then use clone.
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    for request in (_TIOCSTI, _TIOCLINUX):
        rules.add_rule(deny, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, request))
    _keep_to(rules, _FAMILIES if is_apart else (*_INTERNET, *([socket.AF_UNIX] if named_sockets else [])))
    if is_pinned:
        rules.add_rule(deny, "sched_setaffinity")
    _keep_from_setuid(rules)
    if not is_apart:
        _keep_to_tcp(rules)
        _keep_to_itself(rules)
    with os.fdopen(os.memfd_create("seccomp"), "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _keep_to(rules: pyseccomp.SyscallFilter, families: Sequence[int]) -> None:
    """Refuse other families: they reach the hypervisor, hardware and the kernel's crypto in any network namespace."""
    refuse = pyseccomp.ERRNO(errno.EAFNOSUPPORT)
    for family in range(_HIGHEST_FAMILY):
        if family not in families:
            rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family))
    rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.GE, _HIGHEST_FAMILY))


def _keep_from_setuid(rules: pyseccomp.SyscallFilter) -> None:
    """Refuse to make set-uid and set-gid programs, which would outlive the run."""
    deny = pyseccomp.ERRNO(errno.EPERM)
    for bit in _AS_ANOTHER:
        for name, place in _known(_MODES):
            rules.add_rule(deny, name, pyseccomp.Arg(place, pyseccomp.MASKED_EQ, bit, bit))
        for name, (place, flags) in _known(_MODES_OF_NEW):
            for flag in _MAKING:
                is_new = pyseccomp.Arg(flags, pyseccomp.MASKED_EQ, flag, flag)
                rules.add_rule(deny, name, is_new, pyseccomp.Arg(place, pyseccomp.MASKED_EQ, bit, bit))
    # Its mode is in memory, which a filter cannot read; C libraries do not use it.
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "openat2")


def _known(calls: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """The calls that this architecture has."""
    return ((name, places) for name, places in calls.items() if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) >= 0)


def _keep_to_tcp(rules: pyseccomp.SyscallFilter) -> None:
    refuse = pyseccomp.ERRNO(errno.EACCES)
    for family in _INTERNET:
        of = pyseccomp.Arg(0, pyseccomp.EQ, family)
        for kind in _OTHER_TYPES:
            rules.add_rule(refuse, "socket", of, pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _TYPE_BITS, kind))
        # Landlock looks at TCP alone; a stream may also be SCTP or MPTCP.
        for protocol in range(1, socket.IPPROTO_TCP):
            rules.add_rule(refuse, "socket", of, pyseccomp.Arg(2, pyseccomp.EQ, protocol))
        rules.add_rule(refuse, "socket", of, pyseccomp.Arg(2, pyseccomp.GT, socket.IPPROTO_TCP))
    # Sending with a connection in one call goes past the check of connecting.
    for name, place in _SENDING.items():
        rules.add_rule(refuse, name, pyseccomp.Arg(place, pyseccomp.MASKED_EQ, _MSG_FASTOPEN, _MSG_FASTOPEN))


def _keep_to_itself(rules: pyseccomp.SyscallFilter) -> None:
    deny = pyseccomp.ERRNO(errno.EPERM)
    for name in _SHARED:
        rules.add_rule(deny, name)
    for name, place in _OF_ANOTHER.items():
        rules.add_rule(deny, name, pyseccomp.Arg(place, pyseccomp.NE, 0))
