"""What git says when it cannot clone, in words that a person can act on."""

import re
from collections.abc import Mapping, Sequence

from engine.making.repository_addresses import CloneFailed, CloneFailure, RepositoryAddress
from engine.runtimes.scripts.execution import Execution

__all__ = ["failure_of", "too_large"]

_TOLD = 2_000
_MIB = 1024 * 1024
_SAID: Mapping[str, CloneFailure] = {
    r"not found|does not exist|does not appear to be a git repository|not a git repository": CloneFailure.NOT_FOUND,
    r"could not read (Username|Password)|Authentication failed|Permission denied|error: 40[13]": CloneFailure.NOT_FOUND,
    r"transport '.*' not allowed": CloneFailure.NOT_ALLOWED,
    r"No space left|File too large|pack exceeds maximum": CloneFailure.TOO_LARGE,
    r"Could not resolve|Failed to connect|Connection|after CONNECT|timed out|early EOF|RPC failed|error: 5\d\d|SSL|certificate": (
        CloneFailure.UNAVAILABLE
    ),
}


def too_large(max_bytes: int, max_files: int) -> CloneFailed:
    limit = f"{max_bytes // _MIB} MiB or {max_files} files" if max_bytes >= _MIB else f"{max_bytes} bytes or {max_files} files"
    return CloneFailed(CloneFailure.TOO_LARGE, f"The repository is larger than {limit}, git's own files included. Give a smaller one.")


def failure_of(done: Execution, address: RepositoryAddress, refusals: Sequence[str]) -> CloneFailed:
    """`refusals` are those of the proxy, as `host:port: reason`."""
    told = done.stderr[-_TOLD:].decode(errors="replace").strip()
    if done.cut == "time":
        return CloneFailed(CloneFailure.TIMEOUT, "Cloning took too long. Is the host there, and the repository not too large?", told=told)
    if done.ending.disk_full or done.ending.out_of_memory or "File size limit exceeded" in told:
        return CloneFailed(CloneFailure.TOO_LARGE, "Cloning took more disk or memory than it may. Give a smaller repository.", told=told)
    if refusals:
        return _refused(refusals[0], told)
    kind = next((kind for said, kind in _SAID.items() if re.search(said, told, re.IGNORECASE)), CloneFailure.REFUSED)
    return CloneFailed(kind, f"{_REASONS[kind].format(place=address.host or address.path)} git says: {_last_line(told)}", told=told)


_REASONS: Mapping[CloneFailure, str] = {
    CloneFailure.NOT_FOUND: "There is no such repository at {place}, or it is not open to everybody.",
    CloneFailure.NOT_ALLOWED: "The repository at {place} leads to an address of another kind, which is not followed.",
    CloneFailure.TOO_LARGE: "The repository at {place} is too large.",
    CloneFailure.UNAVAILABLE: "{place} cannot be reached now, or broke off.",
    CloneFailure.REFUSED: "git could not clone from {place}.",
}


def _refused(refusal: str, told: str) -> CloneFailed:
    if "could not be resolved" in refusal or "No connection" in refusal:
        return CloneFailed(CloneFailure.UNAVAILABLE, f"The host of the repository cannot be reached: {refusal}", told=told)
    return CloneFailed(CloneFailure.NOT_ALLOWED, f"The sandbox does not let git go there: {refusal}", told=told)


def _last_line(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith(("fatal:", "error:", "remote:"))), lines[-1] if lines else "nothing")
