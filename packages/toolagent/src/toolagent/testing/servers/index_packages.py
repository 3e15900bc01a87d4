"""The file that describes the packages of a test index."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version
from pydantic import AfterValidator, Field, JsonValue, model_validator

from toolagent.testing.servers.documents import Part, read_document

__all__ = ["IndexPackages", "IndexedPackage", "Release", "load_packages", "packages_schema"]


def _read_by(read: Callable[[str], object], otherwise: str) -> AfterValidator:
    def checked(text: str) -> str:
        try:
            read(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is {otherwise.format(error)}") from error
        return text

    return AfterValidator(checked)


def _in_utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


class Release(Part):
    """One version: a wheel of its modules, for every platform."""

    version: Annotated[str, _read_by(Version, "no version (PEP 440), such as 1.0.2")]
    uploaded: Annotated[datetime | None, AfterValidator(_in_utc)] = None
    """Upload time, UTC by default. Unset: the index does not know it."""
    modules: dict[str, str] = {}
    """Source by path in the wheel. Empty: one module with the package's name."""
    requires: tuple[Annotated[str, _read_by(Requirement, "no requirement (PEP 508), such as httpx>=0.28: {}")], ...] = ()
    requires_python: Annotated[str, _read_by(SpecifierSet, "no range of versions, such as >=3.11")] | None = None
    console_scripts: dict[str, str] = {}
    """Commands: `name: module:function`."""
    yanked: bool | str = False
    """Yanked; a text is the reason."""

    @property
    def is_yanked(self) -> bool:
        return self.yanked is not False

    @property
    def yanked_reason(self) -> str | None:
        return self.yanked if isinstance(self.yanked, str) else None

    @model_validator(mode="after")
    def _stays_inside(self) -> Self:
        if bad := [path for path in self.modules if path.startswith("/") or ".." in Path(path).parts]:
            raise ValueError(f"{bad[0]!r} is no path in a wheel; write it like `package/module.py`")
        return self


class IndexedPackage(Part):
    name: Annotated[str, Field(pattern=r"^([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9])$")]
    summary: str = ""
    releases: tuple[Release, ...] = ()

    @property
    def normal_name(self) -> NormalizedName:
        return canonicalize_name(self.name)

    @property
    def latest(self) -> Release | None:
        """The highest version. Releases that are not yanked come first, then those that are not pre-releases."""
        return max(
            self.releases,
            key=lambda one: (not one.is_yanked, not Version(one.version).is_prerelease, Version(one.version)),
            default=None,
        )

    @model_validator(mode="after")
    def _has_each_once(self) -> Self:
        versions = [Version(one.version) for one in self.releases]
        if len(set(versions)) < len(versions):
            raise ValueError(f"{self.name} has a version twice; remove one")
        return self


class IndexPackages(Part):
    packages: tuple[IndexedPackage, ...]
    upload_times: bool = True
    """Whether the index tells upload times. Some indexes do not."""

    @model_validator(mode="after")
    def _has_each_once(self) -> Self:
        names = [one.normal_name for one in self.packages]
        if len(set(names)) < len(names):
            raise ValueError("two packages have the same name; `-`, `_`, `.` and the case of letters make no difference")
        return self


def load_packages(path: Path) -> IndexPackages:
    """Raises DocumentError."""
    return read_document(path, IndexPackages)


def packages_schema() -> dict[str, JsonValue]:
    """The JSON Schema of such files."""
    return IndexPackages.model_json_schema()
