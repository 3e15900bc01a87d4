"""A test package index over real HTTP on 127.0.0.1: the simple API as HTML and JSON, `/pypi/<name>/json`, and the files."""

import html
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from toolagent.testing.servers.index_packages import IndexedPackage, IndexPackages, Release, load_packages
from toolagent.testing.servers.serving import ServerThread
from toolagent.testing.servers.wheels import Wheel, wheel_of

__all__ = ["IndexServer"]

_JSON = "application/vnd.pypi.simple.v1+json"
_META: dict[str, JsonValue] = {"api-version": "1.1"}


@dataclass(frozen=True)
class _File:
    release: Release
    wheel: Wheel


class IndexServer(ServerThread):
    """`with IndexServer(packages) as server:`, then `uv pip install --index-url` with `server.index_url`.

    `downloads` counts the downloads of each file by its name.
    """

    def __init__(self, packages: IndexPackages | Path, port: int = 0) -> None:
        """Raises DocumentError for a file that does not describe packages."""
        described = load_packages(packages) if isinstance(packages, Path) else packages
        self._downloads: Counter[str] = Counter()
        self._tells_times = described.upload_times
        self._packages = {one.normal_name: one for one in described.packages}
        self._files = {
            name: [_File(release, wheel_of(one, release)) for release in sorted(one.releases, key=lambda each: Version(each.version))]
            for name, one in self._packages.items()
        }
        self._by_filename = {file.wheel.filename: file.wheel for files in self._files.values() for file in files}
        routes = [
            Route("/simple/", self._projects),
            Route("/simple/{name}/", self._project),
            Route("/pypi/{name}/json", self._described),
            Route("/pypi/{name}/{version}/json", self._described),
            Route("/files/{filename}", self._file),
        ]
        super().__init__(Starlette(routes=routes), port)

    @property
    def index_url(self) -> str:
        return f"{self.url}/simple/"

    @property
    def downloads(self) -> Mapping[str, int]:
        return dict(self._downloads)

    async def _projects(self, request: Request) -> Response:
        names = [one.name for one in self._packages.values()]
        if _wants_json(request):
            return JSONResponse({"meta": _META, "projects": [{"name": name} for name in names]}, media_type=_JSON)
        return _page((f"/simple/{canonicalize_name(name)}/", name, "") for name in names)

    async def _project(self, request: Request) -> Response:
        given = str(request.path_params["name"])
        name = self._found(given).normal_name
        if given != name:
            return RedirectResponse(f"/simple/{name}/", 301)
        files = self._files[name]
        if _wants_json(request):
            versions = [file.release.version for file in files]
            body = {"meta": _META, "name": name, "versions": versions, "files": [*map(self._listed, files)]}
            return JSONResponse(body, media_type=_JSON)
        return _page((f"/files/{file.wheel.filename}#sha256={file.wheel.sha256}", file.wheel.filename, _attributes(file)) for file in files)

    async def _described(self, request: Request) -> Response:
        package = self._found(str(request.path_params["name"]))
        wanted: str | None = request.path_params.get("version")
        chosen = package.latest if wanted is None else next((one for one in package.releases if _is_version(one, wanted)), None)
        if chosen is None:
            raise HTTPException(404)
        base = str(request.base_url).rstrip("/")
        own = {file.release.version: [self._link(file, base)] for file in self._files[package.normal_name]}
        info = {
            "name": package.name,
            "version": chosen.version,
            "summary": package.summary,
            "requires_python": chosen.requires_python,
            "requires_dist": [*chosen.requires] or None,
            "yanked": chosen.is_yanked,
            "yanked_reason": chosen.yanked_reason,
        }
        body: dict[str, object] = {"info": info, "urls": own[chosen.version], "vulnerabilities": []}
        return JSONResponse(body if wanted is not None else {**body, "releases": own})

    async def _file(self, request: Request) -> Response:
        filename = str(request.path_params["filename"])
        wheel = self._by_filename.get(filename.removesuffix(".metadata"))
        if wheel is None:
            raise HTTPException(404)
        if filename.endswith(".metadata"):
            return Response(wheel.metadata, media_type="text/plain")
        self._downloads[filename] += 1
        return Response(wheel.content, media_type="application/octet-stream")

    def _found(self, name: str) -> IndexedPackage:
        package = self._packages.get(canonicalize_name(name))
        if package is None:
            raise HTTPException(404)
        return package

    def _listed(self, file: _File) -> Mapping[str, JsonValue]:
        """One file in the form of PEP 691, with the size and time of PEP 700."""
        wheel = file.wheel
        entry: dict[str, JsonValue] = {
            "filename": wheel.filename,
            "url": f"/files/{wheel.filename}",
            "hashes": {"sha256": wheel.sha256},
            "size": len(wheel.content),
            "core-metadata": {"sha256": wheel.metadata_sha256},
            "yanked": file.release.yanked,
        }
        if file.release.requires_python:
            entry["requires-python"] = file.release.requires_python
        if (time := self._time(file)) is not None:
            entry["upload-time"] = time
        return entry

    def _link(self, file: _File, base: str) -> Mapping[str, JsonValue]:
        """One file in the form of `/pypi/<name>/json`."""
        wheel, release, time = file.wheel, file.release, self._time(file)
        return {
            "filename": wheel.filename,
            "packagetype": "bdist_wheel",
            "python_version": "py3",
            "requires_python": release.requires_python,
            "url": f"{base}/files/{wheel.filename}",
            "digests": {"sha256": wheel.sha256},
            "size": len(wheel.content),
            "upload_time": time.partition(".")[0] if time else None,
            "upload_time_iso_8601": time,
            "yanked": release.is_yanked,
            "yanked_reason": release.yanked_reason,
        }

    def _time(self, file: _File) -> str | None:
        uploaded = file.release.uploaded
        return uploaded.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if self._tells_times and uploaded is not None else None


def _is_version(release: Release, wanted: str) -> bool:
    try:
        return Version(release.version) == Version(wanted)
    except ValueError:
        return False


def _wants_json(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return _JSON in accepted or "application/vnd.pypi.simple.latest+json" in accepted


def _attributes(file: _File) -> str:
    digest = f"sha256={file.wheel.metadata_sha256}"
    given = {"data-core-metadata": digest, "data-dist-info-metadata": digest}
    if file.release.requires_python:
        given["data-requires-python"] = file.release.requires_python
    if file.release.is_yanked:
        given["data-yanked"] = file.release.yanked_reason or ""
    return "".join(f' {name}="{html.escape(value)}"' for name, value in given.items())


def _page(links: Iterable[tuple[str, str, str]]) -> Response:
    lines = [f'<a href="{html.escape(url)}"{attributes}>{html.escape(name)}</a><br>' for url, name, attributes in links]
    head = '<meta name="pypi:repository-version" content="1.1">'
    return Response(f"<!DOCTYPE html><html><head>{head}</head><body>\n" + "\n".join(lines) + "\n</body></html>", media_type="text/html")
