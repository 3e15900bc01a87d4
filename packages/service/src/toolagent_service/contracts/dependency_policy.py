"""Which packages machine-written code may depend on, and what is said of one that it may not."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.contract import Contract

__all__ = ["DependencyPolicy", "DependencyRefusal", "DependencyVerdict", "PackagePattern", "RefusalKind"]

PackagePattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9._*-]+$", max_length=200)]
"""A name of a package; `*` stands for any text. Case and the choice of `-`, `_` and `.` do not matter."""


class DependencyPolicy(Contract):
    """The operator's word. What is denied is denied whatever else is said; a package that is trusted passes the checks of name and age."""

    allow: Annotated[tuple[PackagePattern, ...], Field(description="Packages that may be asked for.")] = ("*",)
    deny: Annotated[tuple[PackagePattern, ...], Field(description="Packages that may not.")] = ()
    trusted: Annotated[
        tuple[PackagePattern, ...],
        Field(description="Packages that somebody vouches for, such as those of your own: they may be new, and named like others."),
    ] = ()
    min_age_days: Annotated[
        float,
        Field(ge=0, le=3650, description="How long ago the package, and a version of it that fits, must have been published; 0: any time."),
    ] = 14.0
    undated: Annotated[
        Literal["allow", "refuse"],
        Field(description="What to do where the index does not say when; popular packages pass in any case."),
    ] = "refuse"


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

    requirement: Annotated[str, Field(description="In normal form; as asked for, and cut, where it could not be understood.")]
    name: Annotated[str, Field(description="Normalised; empty where there is none.")] = ""
    refusal: DependencyRefusal | None = None
    not_after: Annotated[
        datetime | None, Field(description="What was published later was not judged: to be installed with uv's `--exclude-newer` of this.")
    ] = None

    @property
    def passed(self) -> bool:
        return self.refusal is None
