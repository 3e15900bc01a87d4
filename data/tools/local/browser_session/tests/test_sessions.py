import asyncio
import os
import signal
from pathlib import Path

from conftest import Desk

import chromium


def test_actions_on_a_page_and_what_is_told_of_those_that_could_not_be_opened(with_desk, site: str) -> None:
    async def use(desk: Desk) -> None:
        one = (await desk.do("launch", allowed_hosts=[site, "unknown.invalid:81"]))["session_id"]
        assert (await desk.do("navigate", session_id=one, url=f"http://{site}/"))["title"] == "T"
        await desk.do("click", session_id=one, selector="button")
        assert (await desk.do("extract_text", session_id=one))["text"].endswith("42")
        cut = await desk.do("extract_text", session_id=one, max_chars=1)
        assert (cut["text"], cut["truncated"]) == ("o", True)
        await desk.do("type", session_id=one, selector="#i", text="ab")
        await desk.do("type", session_id=one, selector="#i", text="c", clear=False)
        assert await desk.sessions.get(one).page.input_value("#i") == "abc"
        for more in ({}, {"full_page": True}, {"selector": "button", "format": "jpeg"}):
            assert (desk.folder / (await desk.do("screenshot", session_id=one, **more))["image"]).stat().st_size > 100
        assert (await desk.do("click", session_id=one, selector="a"))["url"] == f"http://{site}/new"
        assert await desk.reason("click", session_id=one, selector="#none", timeout_s=1) == "no_element"
        assert await desk.reason("click", session_id=one, selector="[[", timeout_s=1) == "bad_selector"
        # What the sandbox refuses is told.
        assert await desk.reason("navigate", session_id=one, url=f"http://{site}/refused") == "host_not_allowed"
        assert await desk.reason("navigate", session_id=one, url="https://example.com/") == "host_not_allowed"
        # A page is opened right after one that could not be.
        for _ in range(2):
            assert await desk.reason("navigate", session_id=one, url="https://unknown.invalid:81/") == "navigation_failed"
            assert (await desk.do("navigate", session_id=one, url=f"http://{site}/"))["title"] == "T"
        # So is one in the place of one that crashed.
        assert await desk.reason("navigate", session_id=one, url="http://other.example/") == "host_not_allowed"
        page = desk.sessions.get(one).page
        crashing = asyncio.create_task(page.goto("chrome://crash"))
        async with asyncio.timeout(10):
            while not desk.sessions.get(one).has_crashed:
                await asyncio.sleep(0.05)
        await asyncio.gather(crashing, return_exceptions=True)
        assert await desk.reason("extract_text", session_id=one) == "page_crashed"
        assert (await desk.do("navigate", session_id=one, url=f"http://{site}/"))["status"] == 200

    with_desk(use)


def test_launches_of_one_call_are_one_also_after_its_caller_has_left_and_others_are_counted(with_desk) -> None:
    async def use(desk: Desk) -> None:
        launching = asyncio.create_task(desk.do("launch", "call-a", allowed_hosts=["*"]))
        await asyncio.sleep(0.05)
        launching.cancel()
        (listed,) = (await desk.do("sessions"))["sessions"]
        assert listed["call_id"] == "call-a"
        launches = (desk.do("launch", "call-a", allowed_hosts=["*"]) for _ in range(2))
        first, second = await asyncio.gather(*launches)
        assert first == second == await desk.do("launch", "call-a", allowed_hosts=["*"])
        assert first["session_id"] == listed["session_id"]
        assert await desk.reason("launch", call_id="call-b", allowed_hosts=["*"]) == "too_many_sessions"
        stops = await asyncio.gather(*(desk.do("stop", session_id=first["session_id"]) for _ in range(2)))
        assert [stop["status"] for stop in stops] == ["stopped", "stopped"]
        assert await desk.reason("launch", call_id="call-a", allowed_hosts=["*"]) == "session_stopped"

    with_desk(use, most=1)


def test_a_session_that_is_stopped_while_it_is_launched_leaves_nothing(with_desk) -> None:
    async def use(desk: Desk) -> None:
        launching = asyncio.create_task(desk.reason("launch", allowed_hosts=["*"]))
        await asyncio.sleep(0.1)
        (session,) = desk.sessions.living.values()
        await desk.do("stop", session_id=session.session_id)
        assert await launching == "session_stopped"
        assert desk.sessions.living == {}
        assert session.profile is None or not chromium.processes_of(session.profile)

    with_desk(use)


def test_a_session_that_nobody_uses_ends_and_the_driver_is_started_anew_when_it_has_died(with_desk) -> None:
    async def use(desk: Desk) -> None:
        one = (await desk.do("launch", "call-a", allowed_hosts=["*"]))["session_id"]
        session = desk.sessions.get(one)
        os.kill(driver(), signal.SIGKILL)
        async with asyncio.timeout(10):
            while chromium.processes_of(session.profile):
                await asyncio.sleep(0.05)
        assert await desk.reason("extract_text", session_id=one) == "session_died"
        assert await desk.reason("launch", call_id="call-b", allowed_hosts=["*"]) == "not_launched"
        other = (await desk.do("launch", "call-b", allowed_hosts=["*"]))["session_id"]
        assert other != one
        assert (await desk.do("stop", session_id=one))["status"] == "stopped"
        session = desk.sessions.get(other)
        session.params.idle_timeout_s = 0.1
        async with asyncio.timeout(10):
            while other in desk.sessions.living:
                await asyncio.sleep(0.05)
        assert not session.profile.exists()
        assert await desk.reason("extract_text", session_id=other) == "session_stopped"

    with_desk(use, look_s=0.05)


def driver() -> int:
    """Our child that Playwright talks to."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (found,) = (int(pid) for pid in children if b"run-driver" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return found
