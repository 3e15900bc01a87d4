"""One session: its own Chromium, on its own profile, behind its own proxy."""

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

from playwright.async_api import BrowserContext, Error, Page, Playwright

import chromium
from failures import page_crashed, session_died, session_launching, session_over
from gateway import Gateway, place_of
from params import Launch

LOG = logging.getLogger(__name__)

CLOSE_S = 5.0
REMOVALS, LOOKS, AGAIN_S = 100, 20, 0.05


class Session:
    """`open` starts it. `close` is allowed at any time, and leaves nothing behind."""

    def __init__(self, session_id: str, call_id: str, params: Launch, upstream: str) -> None:
        self.session_id, self.call_id, self.params = session_id, call_id, params
        self.started_at = self.used_at = datetime.now(UTC)
        self.used = monotonic()
        self.gateway = Gateway(params.allowed_hosts, upstream)
        self.profile: Path | None = None
        self.context: BrowserContext | None = None
        self.page: Page | None = None
        self.asked: set[str] = set()
        self.turned = asyncio.Event()
        self.lock = asyncio.Lock()
        self.is_dead = self.is_closing = self.has_crashed = False
        self.waiting = 0

    async def open(self, playwright: Playwright) -> None:
        self.profile = Path(tempfile.mkdtemp(prefix="profile-"))
        chromium.prepare(self.profile)
        context = await playwright.chromium.launch_persistent_context(
            self.profile,
            executable_path=chromium.find(),
            args=chromium.ARGUMENTS,
            env=chromium.environment(self.profile),
            # Without this rule, the browser would reach the sandbox's own loopback without the proxy.
            proxy={"server": await self.gateway.start(), "bypass": "<-loopback>"},
            viewport={"width": self.params.width, "height": self.params.height},
            locale=self.params.locale,
            accept_downloads=False,
        )
        self.context = context
        context.on("close", self.died)
        context.on("page", self.opened)
        context.on("request", lambda request: self.asked.add(place_of(request.url)))
        for page in context.pages:
            self.opened(page)

    def opened(self, page: Page) -> None:
        """Uses the newest page, which a click may have opened."""
        self.page = page
        self.turned.set()
        page.on("close", self.closed)
        page.on("crash", self.crashed)

    async def has_turned(self, page: Page) -> None:
        """Waits until another page is used."""
        while self.page is page:
            self.turned.clear()
            await self.turned.wait()

    def closed(self, page: Page) -> None:
        if page is self.page and self.context is not None and self.context.pages:
            self.page = self.context.pages[-1]

    def crashed(self, page: Page) -> None:
        self.has_crashed = self.has_crashed or page is self.page

    def died(self, *_: object) -> None:
        self.is_dead = self.is_dead or not self.is_closing

    @contextlib.asynccontextmanager
    async def in_use(self, *, anew: bool = False) -> AsyncIterator[Page]:
        """The page, for one action at a time. `anew`: replaces a crashed page. Raises Failure."""
        self.waiting += 1
        try:
            async with self.lock:
                yield await self.current(anew)
        except Error as error:
            # If the browser ended, that is the failure to report.
            self.is_dead = self.is_dead or (is_closed(error) and await self.has_gone())
            self.require()
            if self.has_crashed:
                raise page_crashed(self.session_id) from None
            raise
        finally:
            self.waiting -= 1
            self.used, self.used_at = monotonic(), datetime.now(UTC)

    async def current(self, anew: bool) -> Page:
        self.require()
        if self.has_crashed and not anew:
            raise page_crashed(self.session_id)
        if self.has_crashed or self.page is None or self.page.is_closed():
            self.page = await self.context.new_page()
            self.has_crashed = False
        return self.page

    def forget_hosts(self) -> None:
        self.asked.clear()
        self.gateway.refused.clear()

    @property
    def refused_hosts(self) -> list[str]:
        """The refused hosts that its pages asked for, without those that only the browser itself asked for."""
        return [place for place in self.gateway.refused if place in self.asked]

    async def has_gone(self) -> bool:
        """Whether its Chromium ends now. Without Playwright's own process, there is no event for that."""
        for _ in range(LOOKS):
            if self.profile is None or not chromium.processes_of(self.profile):
                return True
            await asyncio.sleep(AGAIN_S)
        return False

    def require(self) -> None:
        if self.is_closing:
            raise session_over(self.session_id, "it was stopped")
        if self.is_dead:
            raise session_died(self.session_id)
        if self.context is None:
            raise session_launching(self.session_id)

    @property
    def idle_s(self) -> float:
        return 0.0 if self.waiting else monotonic() - self.used

    async def close(self) -> None:
        self.is_closing = True
        if self.context is not None:
            with contextlib.suppress(Error, TimeoutError):
                await asyncio.wait_for(self.context.close(), CLOSE_S)
        if self.profile is not None:
            await asyncio.to_thread(self.remove, self.profile)
        await self.gateway.close()

    def remove(self, profile: Path) -> None:
        """Tries again, because the last processes may still write."""
        for _ in range(REMOVALS):
            chromium.kill_processes_of(profile)
            shutil.rmtree(profile, ignore_errors=True)
            if not profile.exists():
                return
            sleep(AGAIN_S)
        LOG.error("the profile %s of %s cannot be removed", profile, self.session_id)


def is_closed(error: Exception) -> bool:
    """Whether a page, its browser or Playwright's own process has ended."""
    return any(said in str(error) for said in ("has been closed", "Connection closed"))
