"""Recent outcomes in the table `calls`: which tools fail, and how often."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, case, or_, select

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.tables import calls
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent_service.calls.blame import BLAMED, is_own_fault
from toolagent_service.making.repair_rule import Outcome

column = calls.c

_KINDS = [kind.value for kind in BLAMED]
_SKEW = timedelta(minutes=1)
"""Records further in the future come from a clock that was set back."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes, and the errors of failed calls; the newest first."""

    outcomes: tuple[Outcome, ...]
    errors: tuple[ToolError, ...]
    last_good_at: datetime | None = None


class CallOutcomes(DatabaseAccess):
    """All methods raise StoreUnavailableError."""

    async def failing(self, within: timedelta) -> tuple[tuple[str, str], ...]:
        """Tools and versions with failed calls within this time."""
        lately = column.created_at.between(timestamp(now() - within), timestamp(now() + _SKEW))
        failed = and_(column.error_type.in_(_KINDS), column.version != "")
        query = select(column.tool_id, column.version).distinct().where(lately, failed).order_by(column.tool_id, column.version)
        return tuple((tool_id, version) for tool_id, version in await self._database.rows(query))

    async def of(self, tool_id: str, version: str, since: datetime, most: int) -> Outcomes:
        """Outcomes of calls that succeeded or failed by the version's own fault. Refusals and outages are left out."""
        of_it = (column.tool_id == tool_id, column.version == version, or_(column.is_success.is_(True), column.error_type.in_(_KINDS)))
        lately = column.created_at.between(timestamp(since), timestamp(now() + _SKEW))
        told = case((column.error_type.is_not(None), column.result))
        columns = (column.fingerprint, column.created_at, column.is_success, told)
        # Read more than `most`: refusals, such as those of a quarantine, may lie between.
        query = select(*columns).where(*of_it, lately).order_by(column.created_at.desc(), column.call_id).limit(10 * most)
        found, errors, good_at = list[Outcome](), list[ToolError](), list[datetime]()
        for fingerprint, created_at, is_success, result in await self._database.rows(query):
            error = None if is_success or not result else ToolResult.model_validate_json(result).error
            if is_success:
                good_at.append(datetime.fromisoformat(created_at))
            elif error is None or not is_own_fault(error):
                continue
            else:
                errors.append(error)
            found.append(Outcome(fingerprint, failed=not is_success))
            if len(found) == most:
                break
        return Outcomes(tuple(found), tuple(errors), good_at[0] if good_at else None)

    async def is_awaited(self, tool_id: str, version: str, since: datetime, until: datetime) -> bool:
        """Whether a call that began between these times is still running."""
        open_now = (column.tool_id == tool_id, column.version == version, column.settled_at.is_(None))
        began = column.created_at.between(timestamp(since), timestamp(until))
        return await self._database.scalar(select(column.call_id).where(*open_now, began).limit(1)) is not None


def kinds_of(errors: tuple[ToolError, ...]) -> str:
    """`execution_error ×3, …`, the most frequent first."""
    counted: dict[ErrorType, int] = {}
    for error in errors:
        counted[error.type] = counted.get(error.type, 0) + 1
    ordered = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{kind.value} ×{times}" for kind, times in ordered)
