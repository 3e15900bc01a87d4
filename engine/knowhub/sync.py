"""One synchronisation: reads both sides and writes the missing links."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from engine.knowhub.client import SETTING, KnowHubClient, KnowHubError, ResourceChangedError
from engine.store.catalog_state import CatalogState
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from toolagent.contracts.knowhub import KnowHubPlan, KnowHubSync, ResourceChange, ResourceFailure, SyncRequest, SyncStatus
from toolagent_service.knowhub.planning import NotMergeableError, merged, plan_of
from toolagent_service.knowhub.resources import resource_of

_ATTEMPTS = 3
_AT_ONCE = 4
_LONGEST_S = 200.0
"""Longest run. Below the time-out of the activity (`workflows.options`), so that the result is reported."""
_OFF = f"KnowHub is off: set {SETTING} to its URL, on every host."


class KnowHubSyncing:
    """Idempotent: existing links stay. Off without a client. Writes for at most `longest_s` seconds."""

    def __init__(self, tools: ToolTable, groups: GroupTable, client: KnowHubClient | None, *, longest_s: float = _LONGEST_S) -> None:
        self._tools, self._groups, self._client, self._longest_s = tools, groups, client, longest_s

    async def run(self, request: SyncRequest) -> KnowHubSync:
        """Raises KnowHubError if KnowHub cannot be read, StoreUnavailableError."""
        client = self._client
        if client is None:
            return KnowHubSync(status=SyncStatus.OFF, said=_OFF)
        deadline = asyncio.get_running_loop().time() + self._longest_s
        listed = await client.list_all()
        resources = [resource for one in listed.resources if (resource := resource_of(one)) is not None]
        tools = [entry.manifest for entry in await self._tools.list_active_versions()]
        groups = await self._groups.list_all()
        plan = await asyncio.to_thread(plan_of, tools, groups, resources, listed.left_out)
        if request.dry_run:
            return KnowHubSync(status=SyncStatus.PLANNED, said=_told(plan, len(resources), "would change", len(plan.theirs)), plan=plan)
        for slugs in plan.ours:
            await self._tools.add_slugs(slugs.tool_id, slugs.version, slugs.add)
        failed = await _written(client, plan.theirs, deadline)
        status = SyncStatus.PARTLY if failed else SyncStatus.DONE
        said = _told(plan, len(resources), "changed", len(plan.theirs) - len(failed))
        return KnowHubSync(status=status, said=said, plan=plan, failed=failed)


async def _written(client: KnowHubClient, changes: Sequence[ResourceChange], deadline: float) -> tuple[ResourceFailure, ...]:
    """Make the changes and return the failures. A failure does not stop the others. The deadline is a time of the event loop."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(change: ResourceChange) -> ResourceFailure | None:
        async with slots:
            try:
                async with asyncio.timeout_at(deadline):
                    await _change(client, change)
            except TimeoutError:
                return ResourceFailure(resource_id=change.resource_id, reason="There was no time left for it; the next one tries it again.")
            except (KnowHubError, NotMergeableError) as error:
                return ResourceFailure(resource_id=change.resource_id, reason=str(error))
            return None

    return tuple(failure for failure in await asyncio.gather(*map(one, changes)) if failure is not None)


async def _change(client: KnowHubClient, change: ResourceChange) -> None:
    """Merge a change into the current resource. If others change it meanwhile, read it again."""
    for _ in range(_ATTEMPTS):
        read = await client.get(change.resource_id)
        metadata = merged(read.said, change)
        if metadata is None:
            return
        try:
            await client.patch(change.resource_id, metadata, read.tag)
        except ResourceChangedError:
            continue
        # Without a tag, another writer may overwrite it at once: read again to check.
        if read.tag is not None:
            return
    if merged((await client.get(change.resource_id)).said, change) is not None:
        raise ResourceChangedError(
            f"{change.resource_id!r} was changed by others {_ATTEMPTS} times meanwhile; the next one tries it again."
        )


def _told(plan: KnowHubPlan, count: int, verb: str, theirs: int) -> str:
    besides = f" {plan.left_out_total} entries without an id were left out." if plan.left_out_total else ""
    return f"{plan.links_total} links with {count} resources; {verb} {len(plan.ours)} tools here and {theirs} resources there.{besides}"


class CatalogWatch:
    """Starts a synchronisation after a change of the catalog. The first look always does: earlier changes are unknown."""

    def __init__(self, state: CatalogState, changed: Callable[[], Awaitable[None]]) -> None:
        self._state, self._changed = state, changed
        self._number: int | None = None

    async def look(self) -> None:
        """Call `changed` if the catalog changed. If it raises, the next look calls it again. Raises StoreUnavailableError."""
        number = await self._state.number()
        if number != self._number:
            await self._changed()
            self._number = number
