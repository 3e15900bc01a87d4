"""The policy for dependencies of machine-written code, and its verdicts."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.contract import Contract
from toolagent_service.contracts.blanks import Blank

PackagePattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9._*-]+$", max_length=200)]
"""A name of a package; `*` stands for any text. Case, and `-`, `_` or `.`, make no difference."""


class DependencyPolicy(Contract):
    """The operator's policy. `deny` takes precedence. Trusted packages skip the checks of name and age."""

    allow: tuple[PackagePattern, ...] = ("*",)
    """Allowed packages."""
    deny: tuple[PackagePattern, ...] = ()
    """Denied packages."""
    trusted: tuple[PackagePattern, ...] = ()
    """Trusted packages, such as your own: they may be new, and named like others."""
    min_age_days: Annotated[float, Field(ge=0, le=3650)] = 14.0
    """The least age of the package, and of a fitting version; 0: any."""
    undated: Literal["allow", "refuse"] = "refuse"
    """What to do if the index has no dates. Popular packages pass anyway."""


class RefusalKind(StrEnum):
    """Why a requirement is refused: a closed set."""

    MALFORMED = "malformed"
    NO_NAME = "no_name"
    DENIED = "denied"
    NEAR_MISS = "near_miss"
    IMPORT_NAME = "import_name"
    UNKNOWN = "unknown"
    NO_VERSION = "no_version"
    TOO_YOUNG = "too_young"
    UNDATED = "undated"
    INDEX_UNAVAILABLE = "index_unavailable"


class DependencyRefusal(Contract):
    """`message` says what to do instead; `suggestions` are names of packages, the likeliest first."""

    kind: RefusalKind
    message: str
    suggestions: tuple[str, ...] = ()


class DependencyVerdict(Contract):
    """The verdict on one requirement. Install what is in `requirement`, which was judged, not the original."""

    requirement: str
    """In normal form. The original, cut, if it could not be parsed."""
    name: Blank = None
    """The normalised name; empty if there is none."""
    refusal: DependencyRefusal | None = None
    not_after: datetime | None = None
    """Later releases were not judged: install with uv's `--exclude-newer` of this."""

    @property
    def passed(self) -> bool:
        return self.refusal is None
