"""Translates failures of git and ssh into words that a person can act on."""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.making.repositories.addresses import CloneFailed, CloneFailure, RepositoryAddress
from engine.making.repositories.trees import Extent
from engine.runtimes.environments.execution import Execution
from engine.runtimes.process.box import MOST_LEVELS

_TOLD = 2_000
_LINE = 300
_MIB = 1024 * 1024
_SSH_PORT = 22
_SIGNALLED = 128
_OF_LIMITS = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS")
_FULL = r"File size limit exceeded|died of signal 25|invalid index-pack output|No space left|File too large|pack exceeds maximum"
"""Messages of a full disk. Signal 25 is SIGXFSZ: the program that it ends says nothing, and git reports a broken connection."""

_DAMAGED = "repository corruption on the remote side"
"""In this case too, git reports a broken connection."""

_SAID: Mapping[str, CloneFailure] = {
    _DAMAGED: CloneFailure.REFUSED,
    r"not found|does not exist|does not appear to be a git repository|not a git repository": CloneFailure.NOT_FOUND,
    r"could not read (Username|Password)|Authentication failed|Permission denied|error: 40[13]": CloneFailure.NOT_FOUND,
    r"transport '.*' not allowed": CloneFailure.NOT_ALLOWED,
    r"Could not resolve|Failed to connect|Connection|after CONNECT|timed out|early EOF|RPC failed|error: 5\d\d|SSL|certificate": (
        CloneFailure.UNAVAILABLE
    ),
}


def too_large(extent: Extent, max_bytes: int, max_files: int) -> CloneFailed:
    """`extent` was measured when one of the limits was exceeded."""
    if extent.size > max_bytes:
        limit, setting = f"{_size(max_bytes)} of disk", "TOOL_AGENT_REPO_MAX_BYTES"
    else:
        limit, setting = f"{max_files:,} files and folders", "TOOL_AGENT_REPO_MAX_FILES"
    message = f"The newest commit of the repository takes more than {limit}, git's own included. Give a smaller one, or raise {setting}."
    return CloneFailed(CloneFailure.TOO_LARGE, message)


def too_slow(wall_s: float) -> CloneFailed:
    message = f"Cloning took longer than {wall_s:g} s (TOOL_AGENT_REPO_TIMEOUT_S). Is the host there, and the repository not too large?"
    return CloneFailed(CloneFailure.TIMEOUT, message)


def failure_of(done: Execution, address: RepositoryAddress, refusals: Sequence[str]) -> CloneFailed:
    """`refusals` are from the proxy, as `host:port: reason`."""
    told = done.stderr[-_TOLD:].decode(errors="replace").strip()
    if (bound := _bound(done, told)) is not None:
        return bound
    if refusals and any(one in refusals[0] for one in ("could not be resolved", "No connection")):
        return CloneFailed(CloneFailure.UNAVAILABLE, f"The host of the repository cannot be reached: {refusals[0]}", told=told)
    if refusals:
        return CloneFailed(CloneFailure.NOT_ALLOWED, f"The sandbox does not let git go there: {refusals[0]}", told=told)
    kind = next((kind for said, kind in _SAID.items() if re.search(said, told, re.IGNORECASE)), CloneFailure.REFUSED)
    return CloneFailed(kind, f"{_REASONS[kind].format(place=address.host or address.path)} git says: {_last_line(told)}", told=told)


def ssh_failure_of(done: Execution, address: RepositoryAddress, words: str) -> CloneFailed:
    """`words` are the output of the ssh client, also of the other side."""
    told = f"{words[-_TOLD:]}\n{done.stderr[-_TOLD:].decode(errors='replace')}".strip()
    if (bound := _bound(done, told)) is not None:
        return bound
    place, port = (address.host, "") if address.port == _SSH_PORT else (address.pattern, f"-p {address.port} ")
    keyscan = f"ssh-keyscan {port}{address.host.strip('[]')}"
    for said, (kind, reason) in _SSH_SAID.items():
        if re.search(said, told, re.IGNORECASE):
            return CloneFailed(kind, f"{reason.format(place=place, keyscan=keyscan)} ssh says: {_ssh_line(words)}", told=told)
    return failure_of(replace(done, stderr=told.encode()), address, ())


_SSH_SAID: Mapping[str, tuple[CloneFailure, str]] = {
    r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed|REVOKED HOST KEY": (
        CloneFailure.NOT_TRUSTED,
        "{place} shows another key than the known one: the connection may be intercepted, or the host has a new key. Ask its operator; "
        "then replace its line in the known_hosts of the service.",
    ),
    r"host key is known|Host key verification failed": (
        CloneFailure.NOT_TRUSTED,
        "The key of {place} is not known here, and unknown ones are not taken. Compare what `{keyscan}` prints with what the host "
        "publishes, and add it to the known_hosts of the user that runs the service (or to the file of TOOL_AGENT_REPO_SSH_KNOWN_HOSTS).",
    ),
    r"UNPROTECTED PRIVATE KEY|bad permissions": (
        CloneFailure.DENIED,
        "The service's ssh key is open to other users, so ssh does not use it: `chmod 600` it.",
    ),
    r"Permission denied|Too many authentication failures|incorrect passphrase": (
        CloneFailure.DENIED,
        "{place} does not let the service in. Give its ssh key read access there (a deploy key). One with a passphrase works through an "
        "agent only; which key is used can be set by TOOL_AGENT_REPO_SSH_KEY.",
    ),
    r"does not appear to be a git repository|Repository not found|does not exist": (
        CloneFailure.NOT_FOUND,
        "There is no such repository at {place}, or the service's key may not read it.",
    ),
    r"protocol error: bad line length|command not found|account is currently not available": (
        CloneFailure.REFUSED,
        "{place} lets the service in, but does not answer as git does. Has the user of the address a shell there, and git?",
    ),
    r"connect to host|Connection (closed|reset|refused)|kex_exchange|banner exchange|timed out|no matching|unreachable|No route": (
        CloneFailure.UNAVAILABLE,
        "{place} cannot be reached over ssh now, or broke off.",
    ),
}
"""The first pattern that matches counts."""


def _bound(done: Execution, told: str) -> CloneFailed | None:
    """The failure, if a limit ended the run."""
    if done.cut == "time":
        return too_slow(done.duration_s)
    if done.ending.out_of_memory:
        return _beyond("memory (1 GiB)", "Give a smaller repository.", told)
    if done.ending.disk_hidden:
        return _beyond(f"levels of folders ({MOST_LEVELS})", "Give a repository without such folders.", told)
    is_full = _DAMAGED not in told and re.search(_FULL, told)
    if done.ending.disk_full or is_full or done.code - _SIGNALLED == signal.SIGXFSZ:
        return _beyond("disk", "Give a smaller repository, or raise TOOL_AGENT_REPO_MAX_BYTES.", told)
    if done.cut is not None:
        return _beyond(f"room for what git writes ({done.cut}, 1 MiB)", "Its host says too much: give another address.", told)
    if done.ending.processes_refused:
        return _beyond("processes (64)", "Give a smaller repository.", told)
    return _ended(done, told)


def _beyond(what: str, remedy: str, told: str) -> CloneFailed:
    return CloneFailed(CloneFailure.TOO_LARGE, f"Cloning took more {what} than it may. {remedy}", told=told)


def _ended(done: Execution, told: str) -> CloneFailed | None:
    """The failure, if a signal ended git without a message."""
    if done.code <= _SIGNALLED or told:
        return None
    names = {one.value: one.name for one in signal.Signals}
    name = names.get(done.code - _SIGNALLED, f"signal {done.code - _SIGNALLED}")
    message = (
        f"git was ended by {name} before it could say why; a limit of its sandbox does that (1 GiB of memory, the disk of "
        "TOOL_AGENT_REPO_MAX_BYTES), or a machine without memory. Try it again, or give a smaller repository."
    )
    return CloneFailed(CloneFailure.TOO_LARGE if name in _OF_LIMITS else CloneFailure.UNAVAILABLE, message)


_REASONS: Mapping[CloneFailure, str] = {
    CloneFailure.NOT_FOUND: "There is no such repository at {place}, or it is not open to everybody.",
    CloneFailure.NOT_ALLOWED: "The repository at {place} leads to an address of another kind, which is not followed.",
    CloneFailure.TOO_LARGE: "The repository at {place} is too large.",
    CloneFailure.UNAVAILABLE: "{place} cannot be reached now, or broke off.",
    CloneFailure.REFUSED: "git could not clone from {place}.",
}


def _ssh_line(words: str) -> str:
    """The first line that matters; advice and rows of `@` follow."""
    lines = filter(None, (line.strip(" @\r\t") for line in words.splitlines()))
    return next((line for line in lines if not line.startswith("Warning:")), "nothing")[:_LINE]


def _size(size: int) -> str:
    return f"{size / _MIB:g} MiB" if size >= _MIB else f"{size:,} bytes"


def _last_line(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("fatal:", "error:", "remote:"))), lines[-1] if lines else "nothing")
