"""The actions: one function each, from its params to its answer."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Error, Locator, Page, Response
from playwright.async_api import TimeoutError as TooLong

from failures import Failure, host_not_allowed, invalid
from gateway import place_of
from params import Click, Launch, Listing, Navigate, Pdf, Screenshot, Stop, Text, Type
from session import Session
from sessions import Sessions

MOST_PIXELS_HIGH = 16_384
SETTLE_MS = 5_000
TURN_S = 0.3
TRIES = 3
ERROR_PAGE, ERROR_PAGE_MS = "chrome-error://chromewebdata/", 500
SAID = 500


class Call:
    """The id of the call, and the folder for its files."""

    def __init__(self, call_id: str, folder: Path) -> None:
        self.call_id, self.folder = call_id, folder

    def file(self, stem: str, suffix: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{stem}-{os.urandom(4).hex()}.{suffix}"


async def launch(sessions: Sessions, params: Launch, call: Call) -> dict[str, Any]:
    session = await sessions.launch(params, call.call_id)
    browser = session.context.browser if session.context else None
    version = browser.version if browser else ""
    return {"session_id": session.session_id, "started_at": session.started_at.isoformat(), "browser_version": version}


async def navigate(sessions: Sessions, params: Navigate, call: Call) -> dict[str, Any]:
    session = sessions.get(params.session_id)
    require_allowed(session, params.url)
    async with session.in_use(anew=True) as page:
        session.forget_hosts()
        try:
            answer = await loaded(page, params)
        except Error as error:
            session.require()
            with contextlib.suppress(Error):
                await page.wait_for_url(ERROR_PAGE, wait_until="commit", timeout=ERROR_PAGE_MS)
            raise refused_or(session, params.url, not_loaded(params, error)) from None
        if answer is not None:
            require_ours(session, answer)
        return {**await state_of(page), "status": answer.status if answer else None, "refused_hosts": session.refused_hosts}


async def loaded(page: Page, params: Navigate) -> Response | None:
    """Tries again, because the page of an earlier navigation that failed or was given up may still come and interrupt this one."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(Interrupted):
            return await gone_to(page, params)
        await asyncio.sleep(TURN_S)
    return await gone_to(page, params)


class Interrupted(Error):
    """Another navigation interrupted this one."""


async def gone_to(page: Page, params: Navigate) -> Response | None:
    try:
        return await page.goto(params.url, wait_until=params.wait_until, timeout=params.timeout_s * 1000)
    except Error as error:
        if "interrupted by another navigation" in error.message:
            raise Interrupted(error.message) from None
        raise


def require_allowed(session: Session, url: str) -> None:
    """Refuses before the browser leaves the page, and more clearly than the browser."""
    try:
        found = urlsplit(url)
        port = found.port or (443 if found.scheme.lower() == "https" else 80)
    except ValueError as error:
        raise invalid("url", f"The url cannot be read: {error}.") from None
    if not found.hostname:
        raise invalid("url", "The url names no host.")
    if why := session.gateway.why_not(found.hostname, port):
        raise host_not_allowed(place_of(url), why, "url")


def require_ours(session: Session, answer: Response) -> None:
    """A refusal of the proxy looks like a page, also after redirects."""
    place = place_of(answer.url)
    if place in session.gateway.refused:
        raise host_not_allowed(place, session.gateway.refused[place], "url")


def refused_or(session: Session, url: str, otherwise: Failure) -> Failure:
    """To the browser, a tunnel that the proxy refused is a connection error."""
    refused = session.gateway.refused
    for place in (place_of(url), *refused):
        if place in refused and "ERR_TUNNEL" in otherwise.body["error"]["message"]:
            return host_not_allowed(place, refused[place], "url")
    return otherwise


def not_loaded(params: Navigate, error: Error) -> Failure:
    if isinstance(error, TooLong):
        message = f"The page was not loaded ({params.wait_until}) within {params.timeout_s:g} s."
        return Failure(504, "execution_error", "timeout", message, "Give more time, or wait_until commit or domcontentloaded.")
    return Failure(502, "execution_error", "navigation_failed", f"The page cannot be loaded: {said(error)}")


async def click(sessions: Sessions, params: Click, call: Call) -> dict[str, Any]:
    async with element(sessions, params) as (page, found):
        await found.click(timeout=params.timeout_s * 1000)
        return await settled(sessions.get(params.session_id), page)


async def type_text(sessions: Sessions, params: Type, call: Call) -> dict[str, Any]:
    async with element(sessions, params) as (page, field):
        enter = field.fill if params.clear else field.press_sequentially
        await enter(params.text, timeout=params.timeout_s * 1000)
        if params.submit:
            await field.press("Enter", timeout=params.timeout_s * 1000)
        return await settled(sessions.get(params.session_id), page)


async def extract_text(sessions: Sessions, params: Text, call: Call) -> dict[str, Any]:
    async with element(sessions, params) as (page, found):
        text = await found.inner_text(timeout=params.timeout_s * 1000)
        return {**await state_of(page), "text": text[: params.max_chars], "truncated": len(text) > params.max_chars}


async def screenshot(sessions: Sessions, params: Screenshot, call: Call) -> dict[str, Any]:
    async with element(sessions, params) as (page, found):
        file = call.file("screenshot", params.format)
        options = {"path": file, "type": params.format, "timeout": params.timeout_s * 1000}
        if params.selector:
            await found.screenshot(**options)
        elif params.full_page:
            size = await page.evaluate("() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            width, height = (max(1, min(side, MOST_PIXELS_HIGH)) for side in size)
            await page.screenshot(**options, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
        else:
            await page.screenshot(**options)
        return {**await state_of(page), "image": str(file)}


async def pdf(sessions: Sessions, params: Pdf, call: Call) -> dict[str, Any]:
    async with sessions.get(params.session_id).in_use() as page:
        file = call.file("page", "pdf")
        try:
            async with asyncio.timeout(params.timeout_s):
                await page.pdf(path=file, format=params.format, landscape=params.landscape, print_background=True)
        except TimeoutError:
            raise Failure(504, "execution_error", "timeout", f"The PDF was not made within {params.timeout_s:g} s.") from None
        return {**await state_of(page), "pdf": str(file)}


async def stop(sessions: Sessions, params: Stop, call: Call) -> dict[str, Any]:
    was_there = await sessions.stop(params.session_id)
    return {"session_id": params.session_id, "status": "stopped" if was_there else "already_gone"}


async def listing(sessions: Sessions, params: Listing, call: Call) -> dict[str, Any]:
    return {"sessions": sessions.listed()}


@contextlib.asynccontextmanager
async def element(sessions: Sessions, params: Click | Type | Text | Screenshot) -> AsyncIterator[tuple[Page, Locator]]:
    """The page of the session, and the first element of the selector. Raises Failure."""
    selector = params.selector or "body"
    async with sessions.get(params.session_id).in_use() as page:
        try:
            yield page, page.locator(selector).first
        except TooLong:
            message = f"No element {selector!r} could be used within {params.timeout_s:g} s."
            remedy = "Look at the page with browser_extract_text or browser_screenshot, and choose another selector."
            raise invalid("selector", message, "no_element", remedy) from None
        except Error as error:
            if "selector" in said(error):
                raise invalid("selector", f"The selector {selector!r} cannot be used: {said(error)}", "bad_selector") from None
            raise


async def settled(session: Session, page: Page) -> dict[str, Any]:
    """The state after an action that may load or open a page. The browser reports a new page a little later."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(session.has_turned(page), TURN_S)
    page = session.page or page
    with contextlib.suppress(TooLong):
        await page.wait_for_load_state("load", timeout=SETTLE_MS)
    return {**await state_of(page), "refused_hosts": session.refused_hosts}


async def state_of(page: Page) -> dict[str, Any]:
    """URL and title of the page. During a navigation, a page has no title for a moment."""
    try:
        title = await page.title()
    except Error:
        title = ""
    return {"url": page.url, "title": title}


def said(error: Error) -> str:
    return error.message.split("\nCall log:")[0].strip()[:SAID]


ACTIONS = {
    "/launch": (Launch, launch),
    "/navigate": (Navigate, navigate),
    "/click": (Click, click),
    "/type": (Type, type_text),
    "/extract_text": (Text, extract_text),
    "/screenshot": (Screenshot, screenshot),
    "/pdf": (Pdf, pdf),
    "/stop": (Stop, stop),
    "/sessions": (Listing, listing),
}
"""By path: the type of the params, and the function."""
