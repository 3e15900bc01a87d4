"""Builds the parts of the engine from settings."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from activities.admit import Admit
from activities.call_tool import CallTool
from activities.control_tool import ControlTool
from activities.deliver_callback import DeliverCallback
from activities.group_sessions import GroupSessions
from activities.maintain import Maintain
from activities.settle import Settle
from activities.sync_knowhub import SyncKnowHub
from api.ports import Calls, Check, Dependencies, KnowHub, Limits, McpParts
from engine.callbacks.deliveries import Deliveries
from engine.callbacks.posting import SECRET, CallbackPoster, callback_destinations
from engine.calling.dialogues import Dialogues, Sampling
from engine.calling.exchange import Exchange
from engine.calling.fast_call import BegunCalls, FastCall
from engine.calling.host_tools import HostTools
from engine.calling.intake import Intake
from engine.calling.lane_call import LaneMaking
from engine.calling.queued_call import PromptSettlement, QueuedCall
from engine.calls.admission import Admissions
from engine.calls.cached_tools import RenewedTools
from engine.calls.call_folders import CallFolders
from engine.calls.checks.asked import CallLimits, Sources
from engine.calls.effects.ended import Places
from engine.calls.file_parameters import FileParameters
from engine.calls.large_results import LargeResults
from engine.calls.lookup import ToolLookup
from engine.calls.settlement import Settlements
from engine.calls.steps import Steps, StepTrace
from engine.external.fetching import TableFetch
from engine.external.reading import TableReader
from engine.external.tables import Tables
from engine.groups.account import SessionAccounts
from engine.im.client import ImClient
from engine.im.tools import ImFunctions
from engine.knowhub.client import KnowHubClient
from engine.knowhub.sync import KnowHubSyncing
from engine.mcp_servers.logins import McpLogins
from engine.mcp_servers.looking import ServerLooks
from engine.mcp_servers.servers import RegisteredServers
from engine.registry.catalog import CatalogImport
from engine.registry.catalog_watch import ImportCatalog
from engine.registry.export import CatalogExport
from engine.registry.tool_files import ToolFolders
from engine.registry.tool_files_import import ToolFilesImport
from engine.runtimes.builtin import builtin_tools, entries
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import BuiltinTool
from engine.runtimes.docker.building.containers import BuildContainers
from engine.runtimes.running.supervisor import Supervisor
from engine.store.catalog_state import CatalogState
from engine.store.external_tables import ExternalTableRows
from engine.store.mcp_servers import McpServerRows
from engine.store.usage import UsageTable
from engine.upkeep.hosts.draining import Hosts
from engine.upkeep.hosts.loop_watch import LoopWatch
from engine.upkeep.tools.hot_tools import HotTools
from engine.upkeep.tools.maintenance import HostMaintenance, HostParts
from engine.upkeep.tools.scheduling import EVICTION, KeepingLimits, Modes, tools_of_sessions
from toolagent.contracts.lanes import LaneCounts
from toolagent_service.contracts.lanes import LaneMode
from workers.destinations import own_ports, table_destinations
from workers.failures import cannot_run_on
from workers.grace import Grace
from workers.settings.hosts import CallSettings
from workers.settings.tools import SHIPPED_DATA
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.mcp_key import state_key_of
from workers.state.secrets import secrets_of
from workers.storage import Store
from workers.temporal.activities import Activities
from workers.upstreams import McpSide

_RECENT_S = 1.0
"""How old the cached tool of an admitted call may be. The call names its version."""


def builtins_of(settings: Settings) -> Mapping[str, BuiltinTool]:
    """The built-in tools. Raises CannotRun if a setting of theirs cannot be used."""
    calls, limits = settings.calls, settings.limits
    options = BuiltinOptions(
        http_request_allow=calls.http_request_allow,
        http_request_max_bytes=limits.max_result_bytes,
        max_file_bytes=limits.max_file_bytes,
        runcomfy_url=calls.runcomfy_url,
        secrets=secrets_of(StateDirectory(settings.state.state_dir.absolute())).resolve,
    )
    with cannot_run_on(ValueError):
        return builtin_tools(options)


def poster_of(settings: CallSettings, state: StateDirectory) -> CallbackPoster:
    """Posts callbacks. Raises CannotRun if a setting of callbacks cannot be used."""
    with cannot_run_on(ValueError):
        return CallbackPoster(callback_destinations(settings.callback_allow), partial(secrets_of(state).resolve, SECRET))


def tables_of(store: Store) -> Tables:
    """External tool tables. Raises CannotRun if a setting of theirs cannot be used."""
    reader = TableReader(TableFetch(table_destinations(store.settings)))
    every_s = store.settings.tables.external_tools_refresh_s
    return Tables(ExternalTableRows(store.database), reader, secrets_of(store.state), every_s=every_s)


def servers_of(store: Store, looks: ServerLooks, logins: McpLogins) -> RegisteredServers:
    """Registered MCP servers."""
    rows, keys, settings = McpServerRows(store.database), secrets_of(store.state), store.settings
    return RegisteredServers(rows, looks, logins, keys, every_s=settings.tables.mcp_refresh_s, own_ports=own_ports(settings))


def catalog_of(store: Store, tools: Mapping[str, BuiltinTool]) -> ImportCatalog:
    """Imports the built-in tools and the catalog files into the registry; returns the faults of the files."""
    settings, host = store.settings.catalog, store.state.host
    folders = ToolFolders(
        settings.tool_folders,
        settings.script_folder,
        settings.tool_dirs is not None,
        SHIPPED_DATA / "tools" / "core",
    )
    tool_files = ToolFilesImport(store.database, store.archives, host, folders)
    catalog = CatalogImport(store.database, store.archives, secrets_of(store.state), host, tool_files)
    # A host that joins others by their database runs their tools, so a missing data folder is a fault only for other hosts.
    expected = store.settings.database.database_url is None or "data_dir" in settings.model_fields_set
    return lambda: catalog.run(settings.data_dir, entries(tools), expected=expected)


class CallMaking:
    """Makes calls in one process: a host, or a front door alone."""

    def __init__(
        self,
        store: Store,
        supervisor: Supervisor,
        executable: frozenset[str],
        folders: CallFolders,
        intake: Intake,
        sampling: Sampling | None = None,
    ) -> None:
        settings, host = store.settings, store.state.host
        sizes, files = settings.limits, FileParameters(store.files, settings.state.files_folder.absolute())
        limits = CallLimits(
            executable=executable,
            max_params_bytes=sizes.max_params_bytes,
            max_values=sizes.max_values,
            start_timeout_s=settings.running.tool_start_timeout_s,
            queue_timeout_s=settings.calls.queue_timeout_s,
        )
        results = LargeResults(
            store.files, inline_bytes=sizes.inline_result_bytes, max_bytes=sizes.max_result_bytes, max_values=sizes.max_result_values
        )
        places = Places(store.calls, store.settled, store.durations, store.quarantine.note_crash)

        def admissions(lookup: ToolLookup) -> Admissions:
            sources = Sources(lookup, store.calls, files, limits, store.claims, store.doors, store.composites, store.troubles)
            return Admissions(sources, store.placements, places, store.memberships)

        recent = RenewedTools(store.cached_tools, _RECENT_S)
        exchange = Exchange(supervisor, files, results, folders, intake, Dialogues(store.call_messages, sampling))
        self.exchange = exchange
        self.settlements = Settlements(recent, places)
        self.admissions = admissions(RenewedTools(store.cached_tools))
        self.fast = FastCall(supervisor, exchange, self.settlements, intake, host)
        self.queued = QueuedCall(recent, supervisor, exchange, store.calls, host)
        self.lane = LaneMaking(
            store.cached_tools,
            admissions(store.cached_tools),
            supervisor,
            exchange,
            self.settlements,
            store.calls,
            settings.calls.bucket_limits,
            intake,
            host,
            acts=settings.calls.lanes is LaneMode.ALL,
        )


def maintenance_of(store: Store, supervisor: Supervisor, builds: BuildContainers | None, intake: Intake) -> HostMaintenance:
    """Maintains the tools that run on this host, and the containers that tools are built in."""
    settings, host = store.settings.keeping, store.state.host
    modes = Modes(store.tools, CatalogState(store.database))
    hot = HotTools(supervisor, store.registry, store.routes, store.calls, intake, host)
    limits = KeepingLimits(settings.cold_tool_idle_timeout_s, settings.hot_tool_max_containers, EVICTION[settings.eviction_policy])
    parts = HostParts(host, supervisor.keeping, modes, hot, limits, tools_of_sessions(store.sessions, host))
    return HostMaintenance(parts if builds is None else replace(parts, destroy_unused=builds.destroy_unused))


def activities_of(
    store: Store,
    supervisor: Supervisor,
    executable: frozenset[str],
    folders: CallFolders,
    intake: Intake,
    maintain: Maintain,
    knowhub: KnowHubClient | None,
    sampling: Sampling | None,
    grace: Grace,
) -> Activities:
    """The activities of this host for calls and tools."""
    settings, state = store.settings, store.state
    making = CallMaking(store, supervisor, executable, folders, intake, sampling)
    steps = Steps(StepTrace(state.steps), store.lost_steps)
    settlement, slots = PromptSettlement(making.settlements, steps), settings.calls.bucket_limits
    begun = BegunCalls(supervisor, making.exchange, store.calls, settlement, store.durations, slots, intake, grace, state.host)
    admit = Admit(making.admissions, making.fast, begun, steps)
    groups = GroupSessions(SessionAccounts(store.groups, store.sessions, store.events, store.tools))
    callbacks = DeliverCallback(Deliveries(poster_of(settings.calls, state), store.events))
    tools = HostTools(
        store.registry, supervisor, store.routes, (state.tools, state.calls), state.host, state.root / "volumes", store.sessions
    )
    sessions = (groups.open_session, groups.note_session, groups.list_launches, groups.pin_versions, groups.find_group)
    return Activities(
        local=(admit.admit, admit.place, Settle(making.settlements, steps).settle, *sessions, maintain.list_live_hosts),
        call=(CallTool(making.queued, begun, settlement, intake).call_tool,),
        callbacks=(callbacks.deliver_callback, callbacks.note_callback),
        control=(ControlTool(tools).control_tool, maintain.maintain_host),
        service=(maintain.maintain_service, SyncKnowHub(KnowHubSyncing(store.tools, store.groups, knowhub)).sync_knowhub),
        lane=making.lane,
        queued=making.queued,
    )


def doors_of(
    store: Store,
    client: Calls,
    knowhub: KnowHub,
    checks: Mapping[str, Check],
    watch: LoopWatch,
    lane: Callable[[], LaneCounts | None],
    servers: McpSide,
    im: ImClient | None = None,
) -> Dependencies:
    """The dependencies of the front door."""
    settings, front, sizes = store.settings, store.settings.front, store.settings.limits
    return Dependencies(
        client=client,
        registry=store.registry,
        matching=store.matching,
        concierge=store.concierge,
        routes=store.routes,
        groups=store.groups,
        sessions=store.sessions,
        chats=store.chats,
        catalog=CatalogExport(store.database),
        faults=store.faults,
        calls=store.calls,
        call_messages=store.call_messages,
        usage=UsageTable(store.database),
        events=store.events,
        tasks=store.tasks,
        notes=store.notes,
        evidence=store.evidence,
        quarantine=store.quarantine,
        files=store.files,
        hosts=Hosts(store.hosts, store.routes, store.tasks, store.residents),
        lanes=store.doors,
        placements=store.placements,
        knowhub=knowhub,
        tables=tables_of(store),
        mcp_servers=servers.registered,
        upstreams=servers.upstreams,
        callback_refusal=poster_of(settings.calls, store.state).refusal,
        audit=store.audit,
        mcp=McpParts(
            sessions=store.mcp_sessions,
            catalog_number=CatalogState(store.database).number,
            state_key=state_key_of(secrets_of(store.state)),
            task_after_s=settings.mcp.mcp_task_after_s,
            own_port=settings.mcp.mcp_port if settings.mcp.mcp_port != front.fastapi_port else None,
        ),
        has_model=settings.model.model is not None,
        limits=Limits(
            max_params_bytes=sizes.max_params_bytes,
            max_values=sizes.max_values,
            max_file_bytes=sizes.max_file_bytes,
            max_message_bytes=settings.chats.chat_message_bytes,
        ),
        checks=checks,
        longest_pause=watch.longest,
        lane_figures=lane,
        im=im,
        im_functions=ImFunctions(im) if im else None,
        public_url=front.public_url,
        api_key=front.api_key.get_secret_value() if front.api_key else None,
        allowed_hosts=front.allowed_hosts,
    )
