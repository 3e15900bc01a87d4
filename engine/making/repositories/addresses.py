"""Parses addresses of repositories strictly, because git accepts far more than a request may name."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, quote, unquote, urlsplit

_LONGEST = 2_000
_NOT_PRINTED = re.compile(r"[\x00-\x20\x7f\\]|[^\x00-\x7f]")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SCP = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^@/:]{2,}|\[[^\]/]+\]):(?P<path>(?!//).+)")
_PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}
_LOCAL = "file"


class CloneFailure(StrEnum):
    """Why a repository cannot be cloned."""

    NOT_ALLOWED = "not_allowed"
    NOT_FOUND = "not_found"
    TOO_LARGE = "too_large"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    NOT_TRUSTED = "not_trusted"
    DENIED = "denied"
    REFUSED = "refused"


class CloneFailed(Exception):
    """`message` is for people, and holds no secret; `told` is the end of git's output."""

    def __init__(self, kind: CloneFailure, message: str, *, told: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.told = kind, message, told


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """`url` is for git; `host` is empty for `file`, and in brackets if it is an IPv6 address. `path` is unquoted.

    `user` is for ssh; empty: ssh's default.
    """

    scheme: str
    url: str
    path: str
    host: str = ""
    port: int = 0
    user: str = ""

    @property
    def pattern(self) -> str:
        """The host and port that git has to reach."""
        return f"{self.host}:{self.port}"


def repository_address(text: str, schemes: Collection[str]) -> RepositoryAddress:
    """Reads `https://…`, `ssh://…`, `git@host:path` and, where `schemes` has it, `file:///…`, or an absolute path.

    Raises CloneFailed: `not_allowed` for another scheme, `refused` if the text is no address of a repository.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        raise _refused(f"The address of a repository has 1 to {_LONGEST} characters.")
    if text.startswith("-"):
        raise _refused("The address of a repository cannot begin with `-`: git would take it for an option.")
    if _HELPER.match(text):
        raise _refused("Addresses of the form `helper::…` run a program and are never taken. Give the https address of the repository.")
    if _NOT_PRINTED.search(text) and not (text.startswith("/") and text.isprintable()):
        raise _refused("The address of a repository has only visible ASCII characters and no backslash; write others as %XX.")
    if "://" in text:
        return _of_url(text, schemes)
    if text.startswith("/"):
        _require(_LOCAL, schemes)
        return RepositoryAddress(_LOCAL, f"file://{quote(text)}", text)
    return _of_scp(text, schemes)


def _of_url(text: str, schemes: Collection[str]) -> RepositoryAddress:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _refused("This is no address: its host or port cannot be read. Write `https://host/path`.") from error
    scheme = parts.scheme.lower()
    _require(scheme, schemes)
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        raise _refused("The address of a repository has no `?…` and no `#…`: give the address that `git clone` takes.")
    if scheme == _LOCAL:
        return _of_file(parts)
    _require_no_secret(parts, scheme)
    host = parts.netloc.rpartition("@")[2]
    host = host[: host.index("]") + 1] if "]" in host else host.partition(":")[0]
    if not _HOST.fullmatch(host):
        raise _refused("This address names no host. Write `https://host/path`.")
    if not parts.path.strip("/"):
        raise _refused("This address names a host, but no repository on it. Write `https://host/owner/name`.")
    path = unquote(parts.path)
    if not path.isprintable():
        raise _refused("The path of this address holds control characters, written as %XX. Write it without them.")
    user = parts.username or ""
    url = f"{scheme}://{user}{'@' if user else ''}{host}{f':{port}' if port else ''}{parts.path}"
    return RepositoryAddress(scheme, url, path, host.lower(), port or _PORTS.get(scheme, 0), user)


def _of_file(parts: SplitResult) -> RepositoryAddress:
    path = unquote(parts.path)
    if parts.netloc or not path.startswith("/") or not path.isprintable():
        raise _refused("An address of a file has three slashes and an absolute path: `file:///folder/repository`.")
    return RepositoryAddress(_LOCAL, f"file://{quote(path)}", path)


def _of_scp(text: str, schemes: Collection[str]) -> RepositoryAddress:
    """`git@host:owner/name` means ssh."""
    found = _SCP.fullmatch(text)
    if found is None:
        raise _refused("This is no address of a repository. Write it whole: `https://host/owner/name` or `git@host:owner/name`.")
    _require("ssh", schemes)
    user, host, path = found["user"], found["host"], found["path"]
    if (user and not _USER.fullmatch(user)) or not _HOST.fullmatch(host) or path.startswith("-"):
        raise _refused("The user, host or path of this address cannot be one. Write `git@host:owner/name`.")
    return RepositoryAddress("ssh", text, path, host.lower(), _PORTS["ssh"], user or "")


def _require(scheme: str, schemes: Collection[str]) -> None:
    if scheme not in schemes:
        raise CloneFailed(
            CloneFailure.NOT_ALLOWED,
            f"Repositories are not cloned by {scheme!r} here; allowed: {', '.join(sorted(schemes)) or 'none'}. "
            "It is set by TOOL_AGENT_REPO_SCHEMES.",
        )


def _require_no_secret(parts: SplitResult, scheme: str) -> None:
    """The user part is never repeated in a message, because over https a user name alone may be a token."""
    if parts.password is not None or (parts.username is not None and scheme != "ssh"):
        raise _refused("A user name, password or token does not belong in the address, where it would be kept and shown. Leave it out.")
    if parts.username is not None and not _USER.fullmatch(parts.username):
        raise _refused("The user of this address cannot be one. Write `ssh://git@host/path`.")


def _refused(message: str) -> CloneFailed:
    return CloneFailed(CloneFailure.REFUSED, message)
