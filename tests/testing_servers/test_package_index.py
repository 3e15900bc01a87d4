"""The test package index, as uv and other clients see it."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from toolagent.testing.servers.documents import DocumentError, parsed
from toolagent.testing.servers.index_packages import IndexPackages, load_packages
from toolagent.testing.servers.index_server import IndexServer

PACKAGES = """
packages:
  - name: Slug.Maker
    summary: Makes slugs.
    releases:
      - version: "1.0"
        uploaded: 2020-01-02T03:04:05Z
      - version: "1.10"
        uploaded: 2024-01-02
        requires: ["word_parts>=2; python_version >= '3.8'"]
        modules:
          slug_maker/__init__.py: "from word_parts import parts\\n\\n\\ndef main() -> None:\\n    print('-'.join(parts('A B')))\\n"
          slug_maker/words.txt: "one\\n"
        console_scripts: {slug: "slug_maker:main"}
      - version: "1.11"
        yanked: it is broken
      - version: "2.0rc1"
      - version: "3.0"
        requires_python: ">=4"
  - name: word-parts
    releases:
      - version: "2.1"
        modules: {word_parts.py: "def parts(text):\\n    return text.split()\\n"}
  - name: empty
"""
JSON = {"accept": "application/vnd.pypi.simple.v1+json"}


def packages(text: str) -> IndexPackages:
    return parsed(text, IndexPackages, "packages.yaml")


@pytest.fixture(scope="module")
def index() -> Generator[IndexServer]:
    with IndexServer(packages(PACKAGES)) as server:
        yield server


def uv(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("uv")), *words]
    env = {"UV_CACHE_DIR": str(folder / "cache"), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    assert uv(tmp_path, "venv", "-q", "--python", sys.executable, ".venv").returncode == 0
    return tmp_path


def test_uv_installs_a_package_with_what_it_requires(environment: Path, index: IndexServer) -> None:
    before = index.downloads
    ran = uv(environment, "pip", "install", "--index-url", index.index_url, "slug-maker")
    assert ran.returncode == 0, ran.stderr
    assert subprocess.run([environment / ".venv/bin/slug"], check=True, capture_output=True, text=True).stdout == "A-B\n"
    listed = uv(environment, "pip", "list", "--format", "json").stdout
    # 3.0 is for another Python, 2.0rc1 not finished, 1.11 taken back.
    assert '"slug-maker","version":"1.10"' in listed.replace(" ", "")
    new = {name: count - before.get(name, 0) for name, count in index.downloads.items() if count > before.get(name, 0)}
    assert new == {"slug_maker-1.10-py3-none-any.whl": 1, "word_parts-2.1-py3-none-any.whl": 1}


def test_uv_locks_with_hashes_and_installs_by_them(environment: Path, index: IndexServer) -> None:
    (environment / "wanted.in").write_text("slug-maker==1.0\n", "utf-8")
    locked = uv(environment, "pip", "compile", "-q", "--generate-hashes", "--index-url", index.index_url, "wanted.in", "-o", "wanted.lock")
    assert locked.returncode == 0, locked.stderr
    synced = uv(environment, "pip", "sync", "--require-hashes", "--index-url", index.index_url, "wanted.lock")
    assert synced.returncode == 0, synced.stderr
    printed = [environment / ".venv/bin/python", "-c", "import slug_maker; print(slug_maker.__version__)"]
    assert subprocess.run(printed, check=True, capture_output=True, text=True).stdout == "1.0\n"


def test_uv_believes_the_upload_times(environment: Path, index: IndexServer) -> None:
    ran = uv(environment, "pip", "install", "--exclude-newer", "2022-01-01", "--index-url", index.index_url, "slug-maker")
    assert ran.returncode == 0, ran.stderr
    assert "slug-maker==1.0" in ran.stderr


def test_uv_finds_no_package_that_is_not_there(environment: Path, index: IndexServer) -> None:
    ran = uv(environment, "pip", "install", "--index-url", index.index_url, "slug-makers")
    assert ran.returncode != 0
    assert "slug-makers was not found" in ran.stderr


def test_the_simple_api_tells_files_versions_and_times(index: IndexServer) -> None:
    answer = httpx.get(f"{index.index_url}slug-maker/", headers=JSON)
    assert answer.headers["content-type"] == JSON["accept"]
    told = answer.json()
    assert (told["meta"], told["name"]) == ({"api-version": "1.1"}, "slug-maker")
    assert told["versions"] == ["1.0", "1.10", "1.11", "2.0rc1", "3.0"]
    files = {file["filename"].split("-")[1]: file for file in told["files"]}
    assert files["1.0"]["upload-time"] == "2020-01-02T03:04:05.000000Z"
    assert files["1.10"]["upload-time"] == "2024-01-02T00:00:00.000000Z"
    assert "upload-time" not in files["1.11"]
    assert (files["1.11"]["yanked"], files["1.0"]["yanked"]) == ("it is broken", False)
    assert files["3.0"]["requires-python"] == ">=4"
    content = httpx.get(f"{index.url}{files['1.0']['url']}").content
    assert len(content) == files["1.0"]["size"]


def test_names_are_one_however_they_are_written(index: IndexServer) -> None:
    answer = httpx.get(f"{index.index_url}Slug_Maker/")
    assert (answer.status_code, answer.headers["location"]) == (301, "/simple/slug-maker/")
    assert httpx.get(f"{index.url}/pypi/SLUG-MAKER/json").json()["info"]["name"] == "Slug.Maker"


def test_the_simple_api_speaks_html_too(index: IndexServer) -> None:
    page = httpx.get(f"{index.index_url}slug-maker/").text
    assert 'data-yanked="it is broken"' in page
    assert 'data-requires-python="&gt;=4"' in page
    assert page.count("#sha256=") == 5
    assert '<a href="/simple/word-parts/"' in httpx.get(index.index_url).text
    assert httpx.get(index.index_url, headers=JSON).json()["projects"] == [
        {"name": "Slug.Maker"},
        {"name": "word-parts"},
        {"name": "empty"},
    ]


def test_a_package_is_described(index: IndexServer) -> None:
    told = httpx.get(f"{index.url}/pypi/slug-maker/json").json()
    assert (told["info"]["version"], told["info"]["summary"]) == ("3.0", "Makes slugs.")
    assert [*told["releases"]] == ["1.0", "1.10", "1.11", "2.0rc1", "3.0"]
    (file,) = told["releases"]["1.0"]
    assert (file["upload_time"], file["upload_time_iso_8601"]) == ("2020-01-02T03:04:05", "2020-01-02T03:04:05.000000Z")
    assert httpx.get(file["url"]).status_code == 200
    assert told["releases"]["2.0rc1"][0]["upload_time_iso_8601"] is None
    one = httpx.get(f"{index.url}/pypi/slug-maker/1.11/json").json()
    assert (one["info"]["yanked_reason"], "releases" in one) == ("it is broken", False)


@pytest.mark.parametrize(
    "path",
    ["/simple/nothing/", "/pypi/nothing/json", "/pypi/empty/json", "/pypi/slug-maker/9/json", "/pypi/slug-maker/x/json", "/files/a.whl"],
)
def test_what_is_not_there_is_not_found(path: str, index: IndexServer) -> None:
    assert httpx.get(f"{index.url}{path}").status_code == 404


def test_a_package_without_releases_has_no_files(index: IndexServer) -> None:
    assert httpx.get(f"{index.index_url}empty/", headers=JSON).json()["files"] == []


def test_an_index_may_tell_no_times() -> None:
    with IndexServer(packages("{upload_times: false, packages: [{name: a, releases: [{version: '1', uploaded: 2024-01-01}]}]}")) as server:
        (file,) = httpx.get(f"{server.index_url}a/", headers=JSON).json()["files"]
        (link,) = httpx.get(f"{server.url}/pypi/a/json").json()["urls"]
    assert "upload-time" not in file
    assert link["upload_time"] is None


def test_a_release_is_the_same_bytes_each_time() -> None:
    contents: set[bytes] = set()
    for _ in range(2):
        with IndexServer(packages("packages: [{name: a, releases: [{version: '1'}]}]")) as server:
            contents.add(httpx.get(f"{server.url}/files/a-1-py3-none-any.whl").content)
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "packages: [{name: a, releases: [{version: 1.10}]}]",
            "$.packages[0].releases[0].version: must be text, and YAML reads 1.1; put it in quotes.",
        ),
        ("packages: [{name: a, releases: [{version: one}]}]", "'one' is no version (PEP 440), such as 1.0.2"),
        ("packages: [{name: a b}]", "$.packages[0].name: String should match pattern"),
        ("packages: [{name: a_b}, {name: A-B}]", "two packages have the same name"),
        ("packages: [{name: a, releases: [{version: '1'}, {version: '1.0'}]}]", "a has a version twice; remove one"),
        ("packages: [{name: a, releases: [{version: '1', requires: ['=1']}]}]", "'=1' is no requirement (PEP 508)"),
        ("packages: [{name: a, releases: [{version: '1', requires_python: three}]}]", "'three' is no range of versions, such as >=3.11"),
        ("packages: [{name: a, releases: [{version: '1', modules: {../a.py: ''}}]}]", "'../a.py' is no path in a wheel"),
        ("packages: [{name: a, releases: [{version: '1', upload: 2024-01-01}]}]", "Did you mean 'uploaded'?"),
        ("{}", "$.packages: is missing. Add it."),
    ],
)
def test_a_fault_in_the_file_names_place_and_remedy(text: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "packages.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(DocumentError) as error:
        load_packages(file)
    assert str(file) in str(error.value)
    assert fault in str(error.value)
