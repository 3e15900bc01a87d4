"""Reads a requirement that a machine wrote: name, extras, versions and marker (PEP 508), and nothing else."""

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
    """Raises Refused if the text is malformed, or names an address, a file or an option instead of a package."""
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
    """The text for messages, without the passwords of addresses."""
    return repr(shortened(_CREDENTIALS.sub("//***@", text), _SHOWN))


def _not_understood(text: str, error: InvalidRequirement) -> Refused:
    for pattern, what in ((_ADDRESS, "an address"), (_OPTION, "an option"), (_PATH, "a path")):
        if pattern.search(text):
            return _no_name(text, what)
    if not text.isascii():
        why = "is no name of a package: those have letters of a to z, digits, `-`, `_` and `.` only."
    else:
        why = f"is no requirement: {str(error).partition(chr(10))[0]}"
    return Refused(RefusalKind.MALFORMED, f"{shown(text)} {why} {_PLAIN}")


def _no_name(text: str, what: str) -> Refused:
    why = "only packages of the package index are installed, and from there alone."
    return Refused(RefusalKind.NO_NAME, f"{shown(text)} names {what}; {why} {_PLAIN}")
