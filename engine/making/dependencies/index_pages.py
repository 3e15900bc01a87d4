"""Parses a package's page of the simple API, as JSON (PEP 691, 700) or HTML (PEP 503)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from typing import Annotated
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pydantic import AwareDatetime, BaseModel, Field, ValidationError

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


class NoPage(ValueError):
    """The answer is no page of an index."""


@dataclass(frozen=True, slots=True)
class Release:
    """`at` is when its first file was uploaded, if the index says so."""

    version: Version
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Project:
    """`releases` can be installed, the newest version first; `first_at` is when the first of all files was uploaded."""

    releases: tuple[Release, ...]
    first_at: datetime | None


class _File(BaseModel):
    filename: str
    upload_time: Annotated[AwareDatetime | None, Field(alias="upload-time")] = None
    yanked: bool | str = False


class _Page(BaseModel):
    files: tuple[_File, ...]


def read_page(content_type: str, body: bytes) -> Project:
    """Raises NoPage."""
    files = _json_files(body) if "json" in content_type else _html_files(body)
    dates: dict[Version, list[datetime]] = {}
    for file in files:
        if file.yanked is False and (version := _version_of(file.filename)):
            dates.setdefault(version, []).extend(filter(None, [file.upload_time]))
    releases = tuple(Release(version, min(dates[version], default=None)) for version in sorted(dates, reverse=True))
    return Project(releases, min(filter(None, (file.upload_time for file in files)), default=None))


def _json_files(body: bytes) -> tuple[_File, ...]:
    try:
        return _Page.model_validate_json(body).files
    except ValidationError as error:
        raise NoPage("it is no JSON of the simple API") from error


def _html_files(body: bytes) -> tuple[_File, ...]:
    page = _Links()
    page.feed(body.decode("utf-8", "replace"))
    page.close()
    return tuple(page.files())


class _Links(HTMLParser):
    """Takes file names from the addresses, because the texts are for people."""

    def __init__(self) -> None:
        super().__init__()
        self._links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._links.append(dict(attrs))

    def files(self) -> Iterator[_File]:
        for link in self._links:
            name = unquote(urlsplit(link.get("href") or "").path).rpartition("/")[2]
            if name:
                yield _File(filename=name, yanked="data-yanked" in link)


def _version_of(filename: str) -> Version | None:
    """None for formats that are no longer installed, such as eggs and installers."""
    try:
        return parse_wheel_filename(filename)[1] if filename.endswith(".whl") else parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
