"""Warns of vulnerable dependencies, which are looked up after the installation: no call waits for it."""

import asyncio
from datetime import UTC, datetime

import structlog

from engine.runtimes.auditing.advisories import Advisories, Judged
from engine.runtimes.auditing.audit import Audit
from toolagent.contracts.audit import AuditEntry

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class AdvisoryWarnings:
    """Looks up one installation at a time; writes findings to the audit, and a warning to our log. The owner closes it."""

    def __init__(self, advisories: Advisories, audit: Audit, host: str) -> None:
        self._advisories, self._audit, self._host = advisories, audit, host
        self._looks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._is_closed = self._is_blind = False

    async def judge(self, tool_id: str, packages: tuple[str, ...]) -> Judged:
        """Begins a look-up. Refuses nothing and waits for nothing."""
        if packages and not self._is_closed:
            look = asyncio.create_task(self._look(tool_id, packages), name=f"advisories for {tool_id}")
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
        return Judged()

    async def settled(self) -> None:
        """Waits until everything is looked up."""
        while self._looks:
            await asyncio.wait(self._looks)

    async def close(self) -> None:
        """Drops pending look-ups."""
        self._is_closed = True
        for look in self._looks:
            look.cancel()
        await self.settled()

    async def _look(self, tool_id: str, packages: tuple[str, ...]) -> None:
        async with self._turn:
            at = datetime.now(UTC)
            looked = await self._advisories.look(packages)
        self._audit.note(
            AuditEntry(
                at=at,
                action="build",
                tool_id=tool_id,
                host=self._host,
                advisories=looked.notes,
                duration_s=(datetime.now(UTC) - at).total_seconds(),
                message="Known vulnerabilities were looked up." if looked.has_looked else "Known vulnerabilities could not be looked up.",
            )
        )
        if looked.found:
            _log.warning("vulnerable_dependencies", tool_id=tool_id, found=looked.found)
        if not looked.has_looked and not self._is_blind:  # once, until it works again
            _log.warning("advisories_unknown", tool_id=tool_id, reason=looked.unknown)
        self._is_blind = not looked.has_looked
