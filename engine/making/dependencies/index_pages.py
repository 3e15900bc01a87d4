"""What a package index says of one package: the page of the simple API, as JSON (PEP 691, 700) or HTML (PEP 503)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from typing import Annotated
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pydantic import AwareDatetime, BaseModel, Field, ValidationError

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_JSON = "json"


class NoPage(ValueError):
    """What came is no page of an index."""


@dataclass(frozen=True, slots=True)
class Release:
    """`at` is when the first of its files came, where the index says so."""

    version: Version
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Project:
    """`releases` are those that can be installed, the newest version first; `first_at` is when the first file of all came."""

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
    files = _json_files(body) if _JSON in content_type else _html_files(body)
    at: dict[Version, datetime | None] = {}
    for file in files:
        version = None if file.yanked is not False else _version_of(file.filename)
        if version is not None:
            at[version] = _earlier(at.get(version), file.upload_time)
    releases = (Release(version, when) for version, when in at.items())
    dates = [file.upload_time for file in files if file.upload_time is not None]
    return Project(tuple(sorted(releases, key=lambda release: release.version, reverse=True)), min(dates, default=None))


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
    """Names of files are taken from the addresses: the texts are for people."""

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
    """None for what is not installed any more, such as eggs and installers."""
    try:
        return parse_wheel_filename(filename)[1] if filename.endswith(".whl") else parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None


def _earlier(*dates: datetime | None) -> datetime | None:
    known: Iterable[datetime] = (date for date in dates if date is not None)
    return min(known, default=None)
