"""The service at a glance, by a few queries."""

import asyncio
from datetime import timedelta

from api.ports import Dependencies
from toolagent.client import names
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.routes import RunState
from toolagent.contracts.system import (
    CodingAgentStatus,
    GroupCounts,
    HostCounts,
    ImState,
    ImStatus,
    RecentTask,
    ServiceAgentStatus,
    SessionCounts,
    SystemStatus,
    ToolCounts,
    UnconfirmedStop,
    UnderRepair,
    WarmTool,
    Window,
)
from toolagent.contracts.tasks import TaskState

_RECENT = 10
_ALERTS, _LATELY = 20, timedelta(days=1)
_WINDOWS = 100
_MOST = 1_000
"""The most tasks of one state that are counted."""

_REPAIR = "repair_tool"
_UP = (RunState.RUNNING, RunState.STARTING)


async def system_status(dependencies: Dependencies) -> SystemStatus:
    (total, active), running, queued = await asyncio.gather(
        dependencies.registry.counts(), _tasks(dependencies, TaskState.RUNNING), _tasks(dependencies, TaskState.PENDING)
    )
    groups, sessions, hosts, warm = await asyncio.gather(
        _groups(dependencies),
        _sessions(dependencies),
        _hosts(dependencies),
        _warm(dependencies),
    )
    return SystemStatus(
        tools=ToolCounts(total=total, active=active),
        coding_agent=await _coding_agent(dependencies, running, queued),
        groups=groups,
        sessions=sessions,
        hosts=hosts,
        warm=warm,
        service_agent=await _service_agent(dependencies),
        under_repair=tuple(
            UnderRepair(tool_id=task.tool_id, task_id=task.task_id, status=task.status)
            for task in (*running, *queued)
            if task.type == _REPAIR
        ),
        alerts=await dependencies.events.alerts(_LATELY, _ALERTS),
    )


async def _coding_agent(dependencies: Dependencies, running: tuple[ListedTask, ...], queued: tuple[ListedTask, ...]) -> CodingAgentStatus:
    found = [await dependencies.tasks.get(task.task_id) for task in await _tasks(dependencies, None, _RECENT)]
    return CodingAgentStatus(
        running_count=len(running),
        running_task_ids=tuple(task.task_id for task in running),
        queued_count=len(queued),
        recent_tasks=tuple(RecentTask(task_id=task.task_id, status=task.status, task_spec=task.spec) for task in found if task is not None),
    )


async def _service_agent(dependencies: Dependencies) -> ServiceAgentStatus:
    """The conversations with a running workflow; `windows` are the latest of them."""
    windows = await dependencies.chats.page(limit=_WINDOWS, is_open=True)
    im, of_im = (dependencies.im.status(), {*dependencies.im.chat_ids()}) if dependencies.im else (ImStatus(), set[str]())
    return ServiceAgentStatus(
        total_windows=await dependencies.chats.open_count(),
        im_connected=im.state is ImState.CONNECTED,
        im=im,
        windows=tuple(
            Window(chat_id=chat.chat_id, sdk_session_id=names.chat_workflow(chat.chat_id), has_im_window=chat.chat_id in of_im)
            for chat in windows
        ),
    )


async def _tasks(dependencies: Dependencies, status: TaskState | None, most: int = _MOST) -> tuple[ListedTask, ...]:
    return await dependencies.tasks.page(status=status, spec_type=None, tool_id=None, limit=most, before=None)


async def _groups(dependencies: Dependencies) -> GroupCounts:
    groups = await dependencies.groups.list_all()
    return GroupCounts(total=len(groups), with_lifecycle=sum(group.lifecycle for group in groups))


async def _sessions(dependencies: Dependencies) -> SessionCounts:
    living = await dependencies.sessions.living_by_state()
    stopping = await dependencies.sessions.stopping() if living else ()
    unconfirmed = (
        UnconfirmedStop(session_id=view.session_id, group_id=view.group_id, attempts=view.stop_attempts)
        for view in stopping
        if view.stop_attempts
    )
    return SessionCounts(living=living, stop_unconfirmed=tuple(unconfirmed))


async def _hosts(dependencies: Dependencies) -> HostCounts:
    hosts = await dependencies.hosts.list_all()
    alive = [host for host in hosts if host.is_alive]
    return HostCounts(alive=len(alive), dead=len(hosts) - len(alive), draining=sum(host.draining_since is not None for host in alive))


async def _warm(dependencies: Dependencies) -> tuple[WarmTool, ...]:
    routes = (route for route in await dependencies.routes.list_all() if route.state in _UP)
    return tuple(WarmTool(tool_id=route.tool_id, state=route.state, host=route.host, since=route.started_at) for route in routes)
