"""Which packages machine-written code may depend on, and what is said of one that it may not."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.contract import Contract
from toolagent_service.contracts.blanks import Blank

PackagePattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9._*-]+$", max_length=200)]
"""A name of a package; `*` stands for any text. Case and the choice of `-`, `_` and `.` do not matter."""


class DependencyPolicy(Contract):
    """The operator's word. What is denied is denied whatever else is said; a package that is trusted passes the checks of name and age."""

    allow: tuple[PackagePattern, ...] = ("*",)
    """Packages that may be asked for."""
    deny: tuple[PackagePattern, ...] = ()
    """Packages that may not."""
    trusted: tuple[PackagePattern, ...] = ()
    """Packages that somebody vouches for, such as those of your own: they may be new, and named like others."""
    min_age_days: Annotated[float, Field(ge=0, le=3650)] = 14.0
    """How long ago the package, and a version of it that fits, must have been published; 0: any time."""
    undated: Literal["allow", "refuse"] = "refuse"
    """What to do where the index does not say when; popular packages pass in any case."""


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
    """On one requirement. What passed is to be installed as `requirement` has it, which is what was judged, and not as it was asked for."""

    requirement: str
    """In normal form; as asked for, and cut, where it could not be understood."""
    name: Blank = None
    """Normalised; empty where there is none."""
    refusal: DependencyRefusal | None = None
    not_after: datetime | None = None
    """What was published later was not judged: to be installed with uv's `--exclude-newer` of this."""

    @property
    def passed(self) -> bool:
        return self.refusal is None
