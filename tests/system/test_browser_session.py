"""Browser sessions over HTTP: launch, use on pages of the test, stop, and leftovers."""

import json
import os
import shutil
import signal
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import cast

import httpx
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
_NEVER_NAMED = "127.0.0.1:8999"
_PAGES = {
    "/": "<title>Home</title><h1>Hello</h1><form action='/found'><input name=q></form><a href='/second'>on</a>",
    "/second": "<title>Second</title><p>the second page</p>",
    "/found": "<title>Found</title><p>found it</p>",
}


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = cast("_Site", self.server)
        site.asked.append(self.path)
        if self.path == "/slow":
            site.patience.wait(60)
        content = site.pages.get(self.path.partition("?")[0], "").encode()
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None: ...


class _Site(ThreadingHTTPServer):
    """A site for browsers. `asked` are the requested paths."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.pages = dict(_PAGES)
        self.asked: list[str] = []
        self.patience = Event()
        """Once set, `/slow` answers."""
        Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores connections that a killed browser has closed."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/"


@dataclass(frozen=True)
class Sites:
    """Sites: `open` and `other` may be reached; `private` is granted to the tools, but not among the private hosts of the policy."""

    open: _Site
    other: _Site
    private: _Site


@dataclass(frozen=True)
class Browsers:
    """The browser tools of a running service."""

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

    def profiles(self) -> list[Path]:
        """Profiles in the /tmp of the sandboxes."""
        roots = [Path(f"/proc/{pid}/root") for pid, command in self.service.leftovers().items() if "main.py --port" in command]
        return [profile for root in roots if not root.samefile("/") for profile in root.glob("tmp/profile-*")]


def reason_of(result: ToolResult) -> JsonValue:
    assert result.error is not None
    assert isinstance(result.error.details, dict)
    return result.error.details["reason"]


@pytest.fixture(scope="module")
def sites() -> Generator[Sites]:
    sites = Sites(_Site(), _Site(), _Site())
    yield sites
    for site in (sites.open, sites.other, sites.private):
        site.shutdown()
        site.server_close()


@pytest.fixture(scope="module")
def data(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped tools, with access to the sites of the test; and one without its Chromium."""
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


@pytest.fixture(scope="module")
def session(browsers: Browsers, sites: Sites) -> str:
    """One session shared by the tests that leave it as it was. It ends with the last of them, because starting a browser takes seconds of
    processor time.
    """
    return browsers.launched(sites.open.host, sites.private.host, _NEVER_NAMED, "*:8080")


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
    assert browsers.profiles()
    assert browsers.done("stop", session_id=session)["status"] == "stopped"
    assert browsers.done("stop", session_id=session)["status"] == "already_gone"
    assert (browsers.listed(), browsers.chromiums(), browsers.profiles()) == ([], [], [])


def test_a_session_reaches_the_hosts_of_its_launch_and_no_others(browsers: Browsers, session: str, sites: Sites) -> None:
    sites.open.pages["/with"] = f"<title>With</title><img src='{sites.other.url}picture'>"
    sites.open.pages["/away"] = f"<meta http-equiv=refresh content='0;url={sites.other.url}'>"
    status, refused = browsers.call("navigate", session_id=session, url=sites.other.url)
    assert (status, refused.error_type) == (422, ErrorType.VALIDATION_ERROR)
    assert reason_of(refused) == "host_not_allowed"
    assert browsers.done("navigate", session_id=session, url=f"{sites.open.url}with")["refused_hosts"] == [sites.other.host]
    browsers.done("navigate", session_id=session, url=f"{sites.open.url}away", wait_until="networkidle")
    assert sites.other.asked == []


def test_a_session_reaches_no_host_that_the_service_refuses_whatever_its_launch_says(
    browsers: Browsers, session: str, sites: Sites
) -> None:
    for host, said in ((sites.private.host, "not a public address"), (_NEVER_NAMED, "not among the hosts that this tool may reach")):
        status, refused = browsers.call("navigate", session_id=session, url=f"http://{host}/")
        assert refused.error is not None
        assert status == 422, refused.error
        assert said in refused.error.message
    assert sites.private.asked == []


def test_a_page_sees_neither_files_nor_the_ports_of_its_sandbox(browsers: Browsers, session: str, sites: Sites) -> None:
    inside = "127.0.0.1:8000"
    sites.open.pages["/sly"] = (
        f"<iframe src='http://{inside}/health'></iframe><iframe src='file:///etc/hosts'></iframe><a href='file:///etc/hosts'>file</a>"
    )
    sly = browsers.done("navigate", session_id=session, url=f"{sites.open.url}sly")
    assert sly["refused_hosts"] == [inside]
    framed = "iframe >> nth=1 >> internal:control=enter-frame >> body"
    _, seen = browsers.call("extract_text", session_id=session, selector=framed, timeout_s=1)
    assert "localhost" not in str(seen.result)
    assert browsers.done("click", session_id=session, selector="text=file")["url"] == f"{sites.open.url}sly"
    assert browsers.call("navigate", session_id=session, url="file:///etc/hosts")[0] == 422


def test_a_call_that_is_cancelled_leaves_its_session_usable(browsers: Browsers, session: str, sites: Sites) -> None:
    call_id = browsers.service.begin("browser_navigate", {"session_id": session, "url": f"{sites.open.url}slow"})
    wait_until(lambda: "/slow" in sites.open.asked, "the page is asked for")
    browsers.service.http.post(f"/tasks/{call_id}/cancel").raise_for_status()
    result = browsers.service.ended_task(call_id).result
    sites.open.patience.set()
    assert result is not None
    assert result.error is not None
    assert cast("dict[str, JsonValue]", result.error.details)["tool"] == "tool_idle"
    assert browsers.done("navigate", session_id=session, url=sites.open.url)["title"] == "Home"


def test_the_same_launch_gives_the_same_session_and_none_after_its_stop(browsers: Browsers, sites: Sites) -> None:
    body = {"tool_id": "browser_launch", "params": {"allowed_hosts": [sites.open.host]}}
    answer = browsers.service.http.post("/run_tool", json=body, headers={"X-Call-Id": "call-launched-here"}).raise_for_status()
    session = answer.json()["result"]["session_id"]
    listed = next(one for one in cast("list[dict[str, JsonValue]]", browsers.done("sessions")["sessions"]) if one["session_id"] == session)
    assert (listed["session_id"], listed["call_id"], listed["state"]) == (session, "call-launched-here", "running")
    browsers.done("stop", session_id=session)
    status, over = browsers.call("extract_text", session_id=session)
    assert (status, reason_of(over)) == (422, "session_stopped")


def test_what_is_not_there_is_said_and_its_stop_is_a_success(browsers: Browsers) -> None:
    status, unknown = browsers.call("navigate", session_id=_NEVER_THERE, url="http://127.0.0.1/")
    assert (status, unknown.error_type, reason_of(unknown)) == (422, ErrorType.VALIDATION_ERROR, "unknown_session")
    assert browsers.done("stop", session_id=_NEVER_THERE) == {"session_id": _NEVER_THERE, "status": "already_gone"}


def test_a_session_whose_chromium_has_died_says_so_until_it_is_stopped(browsers: Browsers, session: str) -> None:
    for pid in browsers.chromiums():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "died" in str(browsers.done("sessions")), "the death is seen")
    status, died = browsers.call("extract_text", session_id=session)
    assert (status, died.error_type) == (502, ErrorType.EXECUTION_ERROR)
    assert "has died" in str(died.error)
    assert browsers.done("stop", session_id=session)["status"] == "stopped"


def test_without_chromium_the_tools_are_listed_and_calls_name_the_package(browsers: Browsers, sites: Sites) -> None:
    assert browsers.service.http.get("/tools/browserless_launch").is_success
    status, result = run_tool(browsers.service.http, "browserless_launch", {"allowed_hosts": [sites.open.host]})
    assert (status, result.error_type, reason_of(result)) == (503, ErrorType.UNAVAILABLE, "chromium_missing")
    assert "apt-get install" in str(result.error)


def test_a_service_that_is_killed_in_mid_session_leaves_no_browser(browsers: Browsers, sites: Sites) -> None:
    session = browsers.launched(sites.open.host)
    assert browsers.chromiums()
    browsers.service.kill()
    wait_until(lambda: not browsers.chromiums(), "no Chromium is left")
    browsers.service.start()
    status, lost = browsers.call("navigate", session_id=session, url=sites.open.url)
    assert (status, reason_of(lost)) == (422, "unknown_session")
    assert browsers.done("stop", session_id=session)["status"] == "already_gone"


@pytest.mark.long
def test_a_session_of_the_group_is_stopped_after_its_service_was_killed_though_nobody_asks(
    data: Path, sites: Sites, tmp_path: Path
) -> None:
    path, service = "/groups/browser_session/sessions", ServiceProcess(tmp_path / "grouped", _with_groups(data))
    sites.open.asked.clear()
    sites.open.patience.clear()
    try:
        service.start()
        asked = {"params": {"allowed_hosts": [sites.open.host]}, "lease_s": 5}
        opened = service.http.post(path, json=asked, timeout=120).raise_for_status().json()
        assert opened["state"] == "ready", opened["error"]
        _slowly_navigated(service, f"{path}/{opened['session_id']}/run", f"{sites.open.url}slow")
        wait_until(lambda: "/slow" in sites.open.asked, "the page is asked for")
        service.kill()
        service.start()
        shown = f"{path}/{opened['session_id']}"
        ended = wait_until(lambda: one if (one := service.http.get(shown).json())["ended_at"] else None, "the session has ended", 90)
        assert (ended["state"], ended["end"]) == ("stopped", "lease_expired")
        assert Browsers(service).chromiums() == []
    finally:
        sites.open.patience.set()
        service.end()
        service.wait_until_nothing_is_left()


def _with_groups(data: Path) -> Path:
    """The same catalog, with the shipped group."""
    grouped = data.with_name("grouped")
    shutil.copytree(data, grouped, ignore=_NO_CACHES)
    groups = json.loads((ROOT / "data/groups.json").read_text("utf-8"))["groups"]
    mine = [group for group in groups if group["group_id"] == "browser_session"]
    (grouped / "groups.json").write_text(json.dumps({"groups": mine}), "utf-8")
    return grouped


def _slowly_navigated(service: ServiceProcess, path: str, url: str) -> None:
    """A navigation whose caller sees the service die."""

    def ask() -> None:
        with suppress(httpx.HTTPError):
            service.http.post(path, json={"tool_id": "browser_navigate", "params": {"url": url}}, timeout=90)

    Thread(target=ask, daemon=True).start()


@pytest.mark.long
def test_browsers_that_are_open_keep_their_process_from_being_stopped_because_it_is_unused(browsers: Browsers, sites: Sites) -> None:
    browsers.service.end()
    browsers.service.start(HEALTH_CHECK_INTERVAL_S="1", COLD_TOOL_IDLE_TIMEOUT_S="1")
    session = browsers.launched(sites.open.host)
    # Some rounds pass: nothing is to happen, so there is nothing to wait for.
    time.sleep(6)
    assert browsers.done("navigate", session_id=session, url=sites.open.url)["title"] == "Home"
    assert browsers.done("stop", session_id=session)["status"] == "stopped"
    wait_until(lambda: not any("main.py --port" in command for command in browsers.service.leftovers().values()), "its process is stopped")
    assert browsers.listed() == []
