"""The calls of the running service, as a person sees them in Temporal's web page."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.machine import lacking
from tests.system.service_process import ServiceProcess, run_tool

_SHOWN_MS = 60_000


@pytest.fixture
def chromium() -> str:
    """The browser's path; where the machine checks, it has to be there."""
    found = shutil.which("chromium")
    if found is None:
        lacking("chromium is not installed (Debian: apt-get install --no-install-recommends chromium)")
    return found


def test_the_list_of_workflows_shows_the_calls(service: ServiceProcess, chromium: str, tmp_path: Path) -> None:
    call_ids = [run_tool(service.http, "calculator", {"expression": f"{number} + 1"}, f"ui-{number}")[1].call_id for number in range(3)]
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{service.temporal_ui_url}/namespaces/default/workflows")
        for call_id in call_ids:
            page.get_by_text(call_id).first.wait_for(timeout=_SHOWN_MS)
        shown = page.get_by_text("InvokeTool").count()
        picture = page.screenshot(path=tmp_path / "temporal-ui.png")
        browser.close()
    assert shown >= len(call_ids)
    assert picture.startswith(b"\x89PNG")
