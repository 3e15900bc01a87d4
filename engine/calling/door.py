"""A front door: decides which calls take its lane, accepts them, and finds calls that another process has."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from pydantic import JsonValue

from engine.calling.lane import Flight, Lane, LaneFullError
from engine.calls.effects.ended import UsualDurations
from engine.calls.lookup import ToolLookup
from engine.calls.memberships import Roles
from engine.store.calls import CallTable
from engine.store.claims import NOBODY, Claim, ClaimTable
from engine.store.clock import now, timestamp
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.calls.idempotency import fingerprint, is_generated
from toolagent.core.calls.json_size import MAX_STARTED_VALUES, excess_of
from toolagent.core.calls.results import failed, key_conflict
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.versions import NotARangeError
from toolagent_service.calls.lanes import Elsewhere, LanePendingError, LaneRefusedError
from toolagent_service.calls.ways import MOST_LEVELS, WayFacts, has_effects, may_ask, names_files, way_of
from toolagent_service.contracts.lanes import LaneMode, Way

_PATIENCE_S = 5.0
"""How long a caller waits while its lane is stuck, because Temporal or the database is away."""

_LOOK_S = 1.0
"""Interval in which a waiting caller checks whether its lane is stuck."""

_MOVES_S = 2.0
"""How long a cancel waits for the workflow of a moving call, which must learn of it."""


class DoorTables:
    """The tables of a door."""

    def __init__(self, claims: ClaimTable, records: CallTable, tools: ToolLookup, durations: UsualDurations, roles: Roles) -> None:
        self.claims, self.records, self.tools, self.durations, self.roles = claims, records, tools, durations, roles


class Door:
    """`name` owns the claims of calls that are accepted here; `is_ready` tells whether a tool is up in this process."""

    def __init__(self, name: str, lane: Lane, is_ready: Callable[[ToolEntry], bool], tables: DoorTables, mode: LaneMode) -> None:
        self._name, self._lane, self._is_ready, self._tables, self._mode = name, lane, is_ready, tables, mode
        self._claiming = Counter[str]()
        """Calls whose claims are being written."""
        self._withdrawing = dict[str, asyncio.Event]()
        """Calls whose claims are being withdrawn. A request for one waits, because it would see a claim that disappears."""

    async def make(self, call: ToolCall, call_id: str, *, is_new: bool) -> ToolResult | Elsewhere:
        """The result of the call, or who has the call. `is_new`: the id is unused. Raises LaneRefusedError, LanePendingError."""
        text, claimed_at = call.model_dump_json(exclude_defaults=True).encode(), timestamp(now())
        is_deep = excess_of(text, MAX_STARTED_VALUES, MOST_LEVELS) is not None
        try:
            if await self._way(call, len(text), is_deep=is_deep) is Way.WORKFLOW:
                return Elsewhere(None) if is_new else await self._given_away(call, call_id)
            return await self._made(call, call_id, text, claimed_at, is_new=is_new)
        except StoreUnavailableError:
            # A workflow can wait for the database. The claim may have been written nevertheless.
            return Elsewhere(None) if is_new else Elsewhere(call_id, claimed_at=claimed_at)

    async def accept(self, call: ToolCall, call_id: str) -> str:
        """Claims the id of a call before its workflow starts. Returns when it was claimed for this request; empty if it was not.

        Raises LaneRefusedError for another call under the id.
        """
        answer = await self._given_away(call, call_id)
        return answer.claimed_at if isinstance(answer, Elsewhere) else ""

    async def _given_away(self, call: ToolCall, call_id: str) -> ToolResult | Elsewhere:
        claim = Claim(call_id, fingerprint(call), NOBODY, claimed_at=timestamp(now()))
        given = Elsewhere(call_id, claimed_at=claim.claimed_at)
        try:
            answer = await self._claimed(claim, call)
        except StoreUnavailableError:
            return given  # its workflow claims it too
        return given if isinstance(answer, Claim) else answer

    async def _made(self, call: ToolCall, call_id: str, text: bytes, claimed_at: str, *, is_new: bool) -> ToolResult | Elsewhere:
        flight = Flight(Claim(call_id, fingerprint(call), self._name, call=call, claimed_at=claimed_at), call, text)
        if (known := self._lane.flight(call_id)) is not None:
            return await self._ended(known, flight)
        if not is_new and call.idempotency_key is None and is_generated(call_id):
            # A new call with this id may have a workflow without a claim. Made here too, each would count the other as lost.
            return await self._given_away(call, call_id)
        try:
            # Keep a place during the claim: an accepted call must not be refused.
            with self._lane.room():
                if not is_new:
                    with self._noted(call_id):
                        await self._withdrawn(call_id)
                        answer = await self._claimed(flight.claim, call)
                    if not isinstance(answer, Claim):
                        return answer
                    flight.claim, flight.is_accepted, flight.is_cancelled = answer, True, answer.is_cancelled
                taken = self._lane.take(flight)
        except LaneFullError as error:
            if not is_new and (answer := await self._had_before(flight, error)) is not None:
                return answer
            raise LaneRefusedError(_unavailable(flight, f"{error} Try again in a moment.", sent=False)) from error
        return await self._ended(taken, flight)

    async def withdraw(self, call_id: str, claimed_at: str) -> None:
        """Withdraws the claim of a call whose workflow was refused. Raises StoreUnavailableError."""
        await self._tables.claims.withdraw(call_id, NOBODY, claimed_at)
        await self._withdrawn(call_id)
        # A later request may have put the call into this lane, with the same claim.
        if self._lane.flight(call_id) is not None or self._claiming[call_id]:
            return
        is_gone = self._withdrawing[call_id] = asyncio.Event()
        try:
            await self._tables.claims.withdraw(call_id, self._name, claimed_at)
        finally:
            del self._withdrawing[call_id]
            is_gone.set()

    async def _withdrawn(self, call_id: str) -> None:
        while (is_gone := self._withdrawing.get(call_id)) is not None:
            await is_gone.wait()

    async def tool_of_accepted(self, call_id: str) -> str | None:
        """The tool of an accepted call that has not ended. Raises StoreUnavailableError."""
        claim = await self._tables.claims.get(call_id)
        return claim.call.tool_id if claim is not None and claim.call is not None else None

    async def cancel(self, call_id: str) -> bool:
        """Cancels a call that is made here. False: it is not, or it has a workflow by now, which must be told too.

        Raises StoreUnavailableError.
        """
        flight = self._lane.flight(call_id)
        if flight is None:
            return False
        flight.cancel()
        if flight.is_accepted:
            # A process that takes it over after our death must not make it.
            await self._tables.claims.cancel(call_id)
        if flight.moving is not None:
            await asyncio.wait((flight.moving,), timeout=_MOVES_S)
        return not flight.is_moved

    async def cancel_elsewhere(self, call_id: str) -> bool:
        """Marks a call as cancelled; False if no door has it. Raises StoreUnavailableError."""
        return await self._tables.claims.cancel(call_id) is not None

    async def _way(self, call: ToolCall, size: int, *, is_deep: bool) -> Way:
        try:
            entry = await self._tables.tools.find(call.tool_id, call.version) if self._mode is not LaneMode.OFF else None
        except NotARangeError:
            return Way.WORKFLOW  # it reports the error
        if not isinstance(entry, ToolEntry):
            return Way.WORKFLOW
        manifest = entry.manifest
        return way_of(
            WayFacts(
                lanes=self._mode,
                is_waited_for=call.mode is CallMode.SYNC,
                streams=call.stream,
                names_files=names_files(manifest),
                params_bytes=size,
                is_deep=is_deep,
                is_ready=self._is_ready(entry),
                has_effects=has_effects(entry),
                may_ask=may_ask(call.listens, entry),
                has_role=await self._tables.roles.has_role(manifest.tool_id),
                quick_s=self._tables.durations.quick(manifest.tool_id, manifest.version),
            )
        )

    async def _claimed(self, claim: Claim, call: ToolCall) -> Claim | ToolResult | Elsewhere:
        """The claim, if its owner has the call now."""
        standing, found = await self._tables.claims.take(claim, call)
        if found.fingerprint != claim.fingerprint:
            raise _conflict(claim, call)
        if standing == "ours":
            return found
        if standing == "settled" and isinstance(answer := await self._recorded(claim, call), ToolResult):
            return answer
        # It has its own workflow, or gets one, which waits for the door that has the call.
        return Elsewhere(claim.call_id)

    async def _had_before(self, flight: Flight, full: LaneFullError) -> ToolResult | Elsewhere | None:
        """Like `_accepted_before`. If that is unknown, the call stays pending: a full lane must not start workflows for all its callers."""
        try:
            return await self._accepted_before(flight.claim, flight.call)
        except StoreUnavailableError as error:
            said = f"{full} The database does not say whether this call was accepted before. Try again in a moment."
            raise LanePendingError(_unavailable(flight, said, outcome="unknown")) from error

    async def _accepted_before(self, claim: Claim, call: ToolCall) -> ToolResult | Elsewhere | None:
        """Who has a call that was accepted earlier, here or elsewhere; None if it was not."""
        if self._claiming[claim.call_id]:
            return Elsewhere(claim.call_id)
        if not await self._tables.claims.is_known(claim.call_id):
            return None
        held = await self._tables.claims.get(claim.call_id)
        if held is None:
            return await self._recorded(claim, call)
        if held.fingerprint != claim.fingerprint:
            raise _conflict(claim, call)
        return Elsewhere(claim.call_id)

    async def _recorded(self, claim: Claim, call: ToolCall) -> ToolResult | Elsewhere | None:
        """The recorded result; Elsewhere: the call was sent, and has no result yet."""
        record = await self._tables.records.get(claim.call_id)
        if record is None:
            return None
        if record.fingerprint != claim.fingerprint:
            raise _conflict(claim, call)
        return record.result or Elsewhere(claim.call_id)

    async def _ended(self, known: Flight, asked: Flight) -> ToolResult | Elsewhere:
        if known.claim.fingerprint != asked.claim.fingerprint:
            raise _conflict(asked.claim, asked.call)
        settles_since: float | None = None
        while not known.done.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await asyncio.shield(known.done)
            if known.done.done():
                break
            if known.is_settling and known.is_made:
                settles_since = settles_since or time.monotonic()
                if time.monotonic() - settles_since >= _PATIENCE_S:
                    raise _unsettled(known)
            elif not known.is_made and self._lane.silent_s >= _PATIENCE_S:
                self._require_answer(known)
        return known.done.result() or Elsewhere(known.call_id, has_begun=True)

    @contextmanager
    def _noted(self, call_id: str) -> Generator[None]:
        self._claiming[call_id] += 1
        try:
            yield
        finally:
            self._claiming[call_id] -= 1
            if not self._claiming[call_id]:
                del self._claiming[call_id]

    def _require_answer(self, flight: Flight) -> None:
        """Raises for a call that is stuck. A call that was not accepted is taken back."""
        if flight.is_accepted:
            raise LanePendingError(
                _unavailable(flight, "Temporal or the database is away. The call goes on when both are back; ask for it by its id.")
            )
        if self._lane.leave(flight):
            raise LaneRefusedError(_unavailable(flight, "Temporal or the database is away. Try again in a moment.", sent=False))
        if flight.moving is not None:
            said = "Temporal or the database is away. When both are back, the call is known by its id if it was accepted."
            raise LanePendingError(_unavailable(flight, said, outcome="unknown"))


def _unsettled(flight: Flight) -> LanePendingError:
    """A call that is not accepted is lost with this process."""
    said = "The tool has answered, but the database does not take the answer. The call ends when it does; ask for it by its id."
    return LanePendingError(_unavailable(flight, said) if flight.is_accepted else _unavailable(flight, said, outcome="unknown"))


def _unavailable(flight: Flight, message: str, **details: JsonValue) -> ToolResult:
    wrong = ToolError(type=ErrorType.UNAVAILABLE, message=message, details=details)
    return failed(flight.call_id, flight.call.tool_id, wrong, datetime.now(UTC))


def _conflict(claim: Claim, call: ToolCall) -> LaneRefusedError:
    return LaneRefusedError(key_conflict(claim.call_id, call.tool_id, datetime.now(UTC)))
