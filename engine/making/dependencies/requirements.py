"""Reading a requirement that a machine wrote: a name, extras, versions and a marker (PEP 508), and nothing else."""

import re
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from toolagent.core.texts import shortened
from toolagent_service.contracts.dependency_policy import DependencyRefusal, RefusalKind

_MOST = 500
_SHOWN = 200
_ARCHIVE = re.compile(r"\.(whl|zip|egg|tar|tgz|(tar\.)?(gz|bz2|xz|zst))$", re.IGNORECASE)
_ADDRESS = re.compile(r"://|@|^\s*(git|hg|svn|bzr)\+", re.IGNORECASE)
_PATH = re.compile(r"[\\/]|^\s*[.~]")
_OPTION = re.compile(r"(^|\s)--?[A-Za-z]")
_CREDENTIALS = re.compile(r"//[^/\s]*@")
_PLAIN = "Ask for it by its name on the package index, such as `requests>=2.31` or `httpx[http2]==0.28.*`."


@dataclass(frozen=True, slots=True)
class Asked:
    """`name` is normalised (PEP 503); `text` is the requirement in normal form."""

    name: str
    text: str
    versions: SpecifierSet


class Refused(Exception):
    """The requirement does not pass."""

    def __init__(self, kind: RefusalKind, message: str, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.refusal = DependencyRefusal(kind=kind, message=message, suggestions=suggestions)


def read_requirement(text: str) -> Asked:
    """Raises Refused: it is malformed, or names a place, a file or an option instead of a package."""
    if len(text) > _MOST or "\n" in text or "\r" in text:
        # A second line could be an option of the installer.
        raise Refused(RefusalKind.MALFORMED, f"{shown(text)} is not one requirement on one line. {_PLAIN}")
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise _not_understood(text, error) from error
    if requirement.url is not None:
        raise _no_name(text, "an address")
    if _ARCHIVE.search(requirement.name):
        raise _no_name(text, "a file")
    return Asked(canonicalize_name(requirement.name), str(requirement), requirement.specifier)


def shown(text: str) -> str:
    """For messages: an address may hold a password."""
    masked = _CREDENTIALS.sub("//***@", text)
    return repr(shortened(masked, _SHOWN))


def _not_understood(text: str, error: InvalidRequirement) -> Refused:
    for pattern, what in ((_ADDRESS, "an address"), (_OPTION, "an option"), (_PATH, "a path")):
        if pattern.search(text):
            return _no_name(text, what)
    if not text.isascii():
        message = f"{shown(text)} is no name of a package: those have letters of a to z, digits, `-`, `_` and `.` only. {_PLAIN}"
        return Refused(RefusalKind.MALFORMED, message)
    why = str(error).split("\n", 1)[0]
    return Refused(RefusalKind.MALFORMED, f"{shown(text)} is no requirement: {why} {_PLAIN}")


def _no_name(text: str, what: str) -> Refused:
    message = f"{shown(text)} names {what}; only packages of the package index are installed, and from there alone. {_PLAIN}"
    return Refused(RefusalKind.NO_NAME, message)
