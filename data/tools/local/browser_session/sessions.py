"""All sessions of this process."""

import asyncio
import contextlib
import os
from collections import OrderedDict
from typing import Any

from playwright.async_api import Playwright, async_playwright

import chromium
from failures import not_launched, session_over, too_many, unknown_session
from params import Launch
from session import Session, is_closed

MOST = 4
"""A session opens up to 32 connections, and the sandbox's proxy takes 128. With a heavy page, a session has 110 threads and 300 MiB."""

REMEMBERED = 1000
LOOK_S = 5.0


class Sessions:
    """Needs a `close`. The first launch starts the driver of Playwright."""

    def __init__(self, upstream: str, *, most: int = MOST, look_s: float = LOOK_S) -> None:
        self.upstream, self.most, self.look_s = upstream, most, look_s
        self.living: dict[str, Session] = {}
        self.launches: dict[str, asyncio.Task[Session]] = {}
        self.stops: dict[str, asyncio.Task[None]] = {}
        self.over: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self.driver: Playwright | None = None
        self.starting = asyncio.Lock()
        self.reaper: asyncio.Task[None] | None = None

    async def launch(self, params: Launch, call_id: str) -> Session:
        """Idempotent: the same call gets the same session. Goes on if the caller leaves. Raises Failure."""
        if (task := self.launches.get(call_id)) is None:
            for session_id, (launched_by, why) in self.over.items():
                if launched_by == call_id:
                    raise session_over(session_id, why)
            chromium.find()
            if len(self.living) >= self.most:
                raise too_many(self.most)
            session = Session(f"bs-{os.urandom(8).hex()}", call_id, params, self.upstream)
            self.living[session.session_id] = session
            task = self.launches[call_id] = asyncio.create_task(self.opened(session))
        session = await asyncio.shield(task)
        if session.is_closing:
            raise session_over(session.session_id, "it was stopped")
        return session

    async def opened(self, session: Session) -> Session:
        try:
            await session.open(await self.playwright())
        except BaseException as error:
            self.launches.pop(session.call_id, None)
            self.living.pop(session.session_id, None)
            await asyncio.shield(session.close())
            if isinstance(error, Exception) and is_closed(error):
                self.driver = None
                raise not_launched() from error
            raise
        if self.reaper is None:
            self.reaper = asyncio.create_task(self.reap())
        return session

    async def playwright(self) -> Playwright:
        async with self.starting:
            if self.driver is None:
                self.driver = await async_playwright().start()
            return self.driver

    def get(self, session_id: str) -> Session:
        """Raises Failure."""
        if session := self.living.get(session_id):
            return session
        if session_id in self.over:
            raise session_over(session_id, self.over[session_id][1])
        raise unknown_session(session_id)

    async def stop(self, session_id: str, why: str = "it was stopped") -> bool:
        """False if it had ended before. A second stop at the same time also waits."""
        if (task := self.stops.get(session_id)) is None:
            if (session := self.living.get(session_id)) is None:
                return False
            task = self.stops[session_id] = asyncio.create_task(self.end(session, why))
        await asyncio.shield(task)
        return True

    async def end(self, session: Session, why: str) -> None:
        session.is_closing = True
        self.over[session.session_id] = (session.call_id, why)
        while len(self.over) > REMEMBERED:
            self.over.popitem(last=False)
        launch = self.launches.get(session.call_id)
        try:
            # A cancelled launch could leave an unknown browser, because Playwright would still start it.
            if launch is not None:
                await asyncio.wait([launch])
            await session.close()
        finally:
            self.living.pop(session.session_id, None)
            self.launches.pop(session.call_id, None)
            self.stops.pop(session.session_id, None)

    async def reap(self) -> None:
        while True:
            await asyncio.sleep(self.look_s)
            for session in [*self.living.values()]:
                if session.idle_s > session.params.idle_timeout_s:
                    await self.stop(session.session_id, f"nobody used it for {session.params.idle_timeout_s:g} s")

    def listed(self) -> list[dict[str, Any]]:
        return [
            {
                "session_id": session.session_id,
                "call_id": session.call_id,
                "state": "died" if session.is_dead else "running" if session.page is not None else "launching",
                "started_at": session.started_at.isoformat(),
                "last_used_at": session.used_at.isoformat(),
                "allowed_hosts": session.params.allowed_hosts,
            }
            for session in self.living.values()
        ]

    async def close(self) -> None:
        if self.reaper is not None:
            self.reaper.cancel()
        await asyncio.gather(*map(self.stop, [*self.living]), return_exceptions=True)
        if self.driver is not None:
            with contextlib.suppress(Exception):
                await self.driver.stop()
