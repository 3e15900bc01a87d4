"""Browsers through HTTP: launched, used on pages that the test serves, stopped; and what is left of them."""

import json
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from pydantic import JsonValue

from tests.machine import lacking
from tests.system.service_process import ROOT, ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult

# The first call builds the environment.
pytestmark = pytest.mark.timeout(300)

_NO_CACHES = shutil.ignore_patterns("__pycache__", ".venv", ".pytest_cache")
_NEVER_THERE = "bs-00000000000000ff"
_PAGES = {
    "/": "<title>Home</title><h1>Hello</h1><form action='/found'><input name=q></form><a href='/second'>on</a>",
    "/second": "<title>Second</title><p>the second page</p>",
    "/found": "<title>Found</title><p>found it</p>",
}


class _Page(BaseHTTPRequestHandler):
    server: "_Site"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self.server.pages.get(self.path.partition("?")[0], "").encode()
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None: ...


class _Site(ThreadingHTTPServer):
    """What a browser may see. `asked` are the paths that it was asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.pages = dict(_PAGES)
        self.asked: list[str] = []
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/"


@dataclass(frozen=True)
class Sites:
    """`open` may be reached, `other` too, `private` is allowed to the tools but not among the private hosts of the policy."""

    open: _Site
    other: _Site
    private: _Site


@dataclass(frozen=True)
class Browsers:
    """The tools of a running service."""

    service: ServiceProcess

    def call(self, action: str, **params: JsonValue) -> tuple[int, ToolResult]:
        return run_tool(self.service.http, f"browser_{action}", params)

    def done(self, action: str, **params: JsonValue) -> dict[str, JsonValue]:
        status, result = self.call(action, **params)
        assert (status, result.error) == (200, None)
        assert isinstance(result.result, dict)
        return result.result

    def launched(self, *hosts: str) -> str:
        return str(self.done("launch", allowed_hosts=[*hosts])["session_id"])

    def listed(self) -> list[JsonValue]:
        sessions = self.done("sessions")["sessions"]
        assert isinstance(sessions, list)
        return [session["session_id"] for session in sessions if isinstance(session, dict)]

    def file(self, file_id: JsonValue) -> bytes:
        return self.service.http.get(f"/files/{file_id}").raise_for_status().content

    def chromiums(self) -> list[int]:
        return [pid for pid, command in self.service.leftovers().items() if "--user-data-dir=" in command]


@pytest.fixture(scope="module")
def sites() -> Generator[Sites]:
    sites = Sites(_Site(), _Site(), _Site())
    yield sites
    for site in (sites.open, sites.other, sites.private):
        site.shutdown()
        site.server_close()


@pytest.fixture(scope="module")
def data(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped tools, allowed what the test serves; and one whose Chromium is not there."""
    if not Path("/usr/lib/chromium/chromium").exists():
        lacking("chromium is not installed (Debian: apt-get install --no-install-recommends chromium)")
    folder = tmp_path_factory.mktemp("browsing")
    data = folder / "data"
    shutil.copytree(ROOT / "data/tools/local/browser_session", data / "tools/local/browser_session", ignore=_NO_CACHES)
    registry = json.loads((ROOT / "data/registry.json").read_text("utf-8"))
    sources = json.loads((ROOT / "data/sources.json").read_text("utf-8"))["sources"]
    tools = [tool for tool in registry["tools"] if tool["tool_id"].startswith("browser_")]
    for tool in tools:
        tool["securityContext"]["networkAccess"]["allowHosts"] = [sites.open.host, sites.other.host, sites.private.host]
    without = {**tools[0], "tool_id": "browserless_launch"}
    mine = {tool["tool_id"]: sources[tool["tool_id"]] for tool in tools}
    mine["browserless_launch"] = [{**mine["browser_launch"][0], "process": "browserless", "environment": {"CHROMIUM": "/usr/lib/none"}}]
    (data / "registry.json").write_text(json.dumps({**registry, "tools": [*tools, without]}), "utf-8")
    (data / "sources.json").write_text(json.dumps({"sources": mine}), "utf-8")
    (folder / "policy.json").write_text(json.dumps({"private_hosts": [sites.open.host, sites.other.host]}), "utf-8")
    (folder / "environments").mkdir()
    return data


@pytest.fixture(scope="module")
def browsers(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Browsers]:
    service = ServiceProcess(tmp_path_factory.mktemp("browsers"), data)
    service.start()
    yield Browsers(service)
    service.end()
    service.wait_until_nothing_is_left()


def test_a_session_from_launch_to_stop(browsers: Browsers, sites: Sites) -> None:
    session = browsers.launched(sites.open.host)
    home = browsers.done("navigate", session_id=session, url=sites.open.url)
    assert home == {"url": sites.open.url, "title": "Home", "status": 200, "refused_hosts": []}
    assert browsers.done("extract_text", session_id=session, selector="h1")["text"] == "Hello"
    assert browsers.done("click", session_id=session, selector="text=on")["title"] == "Second"
    browsers.done("navigate", session_id=session, url=sites.open.url)
    assert browsers.done("type", session_id=session, selector="input", text="a b", submit=True)["title"] == "Found"
    assert "/found?q=a+b" in sites.open.asked
    picture = browsers.file(browsers.done("screenshot", session_id=session)["image"])
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 1000
    assert browsers.file(browsers.done("pdf", session_id=session)["pdf"]).startswith(b"%PDF")
    assert browsers.listed() == [session]
    assert browsers.chromiums()
    assert browsers.done("stop", session_id=session)["status"] == "stopped"
    assert browsers.done("stop", session_id=session)["status"] == "already_gone"
    assert (browsers.listed(), browsers.chromiums()) == ([], [])
