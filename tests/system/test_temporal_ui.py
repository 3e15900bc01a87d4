"""Calls of the running service on Temporal's web page."""

import shutil
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.machine import lacking
from tests.system.service_process import ServiceProcess, run_tool

_SHOWN_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """A browser; required where CI runs."""
    found = shutil.which("chromium")
    if found is None:
        lacking("chromium is not installed (Debian: apt-get install --no-install-recommends chromium)")
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(browser: Browser) -> Generator[Page]:
    """One page for all tests, because loading it takes seconds."""
    with browser.new_page(viewport={"width": 1400, "height": 900}) as page:
        yield page


@pytest.mark.long
def test_the_list_of_workflows_shows_the_calls(service: ServiceProcess, page: Page) -> None:
    call_ids = [service.begin("calculator", {"expression": f"{number} + 1"}) for number in range(3)]
    page.goto(f"{service.temporal_ui_url}/namespaces/default/workflows")
    for call_id in call_ids:
        page.get_by_text(call_id).first.wait_for(timeout=_SHOWN_MS)
    assert page.get_by_text("InvokeTool").count() >= len(call_ids)


def test_the_page_of_a_lane_says_which_tools_its_batches_called(service: ServiceProcess, page: Page) -> None:
    assert run_tool(service.http, "calculator", {"expression": "1 + 1"})[1].metadata["way"] == "lane"
    (lane,) = service.http.get("/lanes").json()["lanes"]
    page.goto(f"{service.temporal_ui_url}/namespaces/default/workflows/{lane['workflow_id']}")
    page.get_by_role("tab", name="Event History").click()
    page.get_by_text("calculator", exact=True).first.wait_for(timeout=_SHOWN_MS)
