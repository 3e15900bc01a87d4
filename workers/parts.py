"""The engine's parts, made from settings and given to each other."""

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
from workers.failures import CannotRun
from workers.grace import Grace
from workers.settings.environment import environment
from workers.settings.hosts import CallSettings, KeepingSettings
from workers.settings.kept import DatabaseSettings
from workers.settings.tools import SHIPPED_DATA, CatalogSettings
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.mcp_key import state_key_of
from workers.state.secrets import SecretSource
from workers.storage import Store
from workers.temporal.activities import Activities
from workers.upstreams import McpSide

_RECENT_S = 1.0
"""How old the tool may be that an admitted call is made and settled with: it names its version."""


def builtins_of(settings: Settings) -> Mapping[str, BuiltinTool]:
    """Raises CannotRun when a setting of theirs cannot be used."""
    calls, limits = settings.calls, settings.limits
    options = BuiltinOptions(
        http_request_allow=calls.http_request_allow,
        http_request_max_bytes=limits.max_result_bytes,
        max_file_bytes=limits.max_file_bytes,
        runcomfy_url=calls.runcomfy_url,
        secrets=SecretSource(environment(), settings.state.state_dir.absolute() / "secrets").resolve,
    )
    try:
        return builtin_tools(options)
    except ValueError as error:
        raise CannotRun(str(error)) from error


def poster_of(settings: CallSettings, state: StateDirectory) -> CallbackPoster:
    """Raises CannotRun when a setting of its own cannot be used."""
    secrets = SecretSource(environment(), state.root / "secrets")
    try:
        return CallbackPoster(callback_destinations(settings.callback_allow), partial(secrets.resolve, SECRET))
    except ValueError as error:
        raise CannotRun(str(error)) from error


def tables_of(store: Store, settings: Settings, state: StateDirectory) -> Tables:
    """External tool tables. Raises CannotRun when a setting of theirs cannot be used."""
    keys = SecretSource(environment(), state.root / "secrets")
    reader = TableReader(TableFetch(table_destinations(settings)))
    return Tables(ExternalTableRows(store.database), reader, keys, every_s=settings.tables.external_tools_refresh_s)


def servers_of(store: Store, settings: Settings, state: StateDirectory, looks: ServerLooks, logins: McpLogins) -> RegisteredServers:
    """Registered MCP servers."""
    keys = SecretSource(environment(), state.root / "secrets")
    rows = McpServerRows(store.database)
    return RegisteredServers(rows, looks, logins, keys, every_s=settings.tables.mcp_refresh_s, own_ports=own_ports(settings))


def catalog_of(
    store: Store, settings: CatalogSettings, database: DatabaseSettings, state: StateDirectory, tools: Mapping[str, BuiltinTool]
) -> ImportCatalog:
    """What brings the built-in tools and the catalog files into the registry; it returns what was wrong with them."""
    vault = SecretSource(environment(), state.root / "secrets")
    archives = store.archives
    folders = ToolFolders(
        settings.tool_folders,
        settings.script_folder,
        settings.tool_dirs is not None,
        SHIPPED_DATA / "tools" / "core",
    )
    tool_files = ToolFilesImport(store.database, archives, state.host, folders)
    catalog = CatalogImport(store.database, archives, vault, state.host, tool_files)
    # A host that joins others by their database runs their tools; only who has none to join, or names a folder, misses it.
    expected = database.database_url is None or "data_dir" in settings.model_fields_set
    return lambda: catalog.run(settings.data_dir, entries(tools), expected=expected)


class CallMaking:
    """What makes calls in one process: a host, or a front door alone."""

    def __init__(
        self,
        store: Store,
        supervisor: Supervisor,
        executable: frozenset[str],
        settings: Settings,
        host: str,
        folders: CallFolders,
        intake: Intake,
        sampling: Sampling | None = None,
    ) -> None:
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


def maintenance_of(
    store: Store, supervisor: Supervisor, settings: KeepingSettings, host: str, builds: BuildContainers | None, intake: Intake
) -> HostMaintenance:
    """What looks after the tools that run on this host, and after containers that tools are built in."""
    modes = Modes(store.tools, CatalogState(store.database))
    hot = HotTools(supervisor, store.registry, store.routes, store.calls, intake, host)
    limits = KeepingLimits(settings.cold_tool_idle_timeout_s, settings.hot_tool_max_containers, EVICTION[settings.eviction_policy])
    parts = HostParts(host, supervisor.keeping, modes, hot, limits, tools_of_sessions(store.sessions, host))
    return HostMaintenance(parts if builds is None else replace(parts, destroy_unused=builds.destroy_unused))


def activities_of(
    store: Store,
    supervisor: Supervisor,
    executable: frozenset[str],
    settings: Settings,
    state: StateDirectory,
    folders: CallFolders,
    intake: Intake,
    maintain: Maintain,
    knowhub: KnowHubClient | None,
    sampling: Sampling | None,
    grace: Grace,
) -> Activities:
    """What this host can do."""
    making = CallMaking(store, supervisor, executable, settings, state.host, folders, intake, sampling)
    steps = Steps(StepTrace(state.steps), store.lost_steps)
    settlement, slots = PromptSettlement(making.settlements, steps), settings.calls.bucket_limits
    begun = BegunCalls(supervisor, making.exchange, store.calls, settlement, store.durations, slots, intake, grace, state.host)
    return Activities(
        admit=Admit(making.admissions, making.fast, begun, steps),
        call=CallTool(making.queued, begun, settlement, intake),
        queued=making.queued,
        settle=Settle(making.settlements, steps),
        control=ControlTool(
            HostTools(
                store.registry, supervisor, store.routes, (state.tools, state.calls), state.host, state.root / "volumes", store.sessions
            )
        ),
        callbacks=DeliverCallback(Deliveries(poster_of(settings.calls, state), store.events)),
        lane=making.lane,
        sessions=GroupSessions(SessionAccounts(store.groups, store.sessions, store.events, store.tools)),
        maintain=maintain,
        knowhub=SyncKnowHub(KnowHubSyncing(store.tools, store.groups, knowhub)),
    )


def doors_of(
    store: Store,
    client: Calls,
    knowhub: KnowHub,
    settings: Settings,
    state: StateDirectory,
    checks: Mapping[str, Check],
    watch: LoopWatch,
    lane: Callable[[], LaneCounts | None],
    servers: McpSide,
    im: ImClient | None = None,
) -> Dependencies:
    """What the front door stands before."""
    front, sizes = settings.front, settings.limits
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
        tables=tables_of(store, settings, state),
        mcp_servers=servers.registered,
        upstreams=servers.upstreams,
        callback_refusal=poster_of(settings.calls, state).refusal,
        audit=store.audit,
        mcp=McpParts(
            sessions=store.mcp_sessions,
            catalog_number=CatalogState(store.database).number,
            state_key=state_key_of(SecretSource(environment(), state.root / "secrets")),
            task_after_s=settings.mcp.mcp_task_after_s,
            own_port=settings.mcp.mcp_port if settings.mcp.mcp_port != settings.front.fastapi_port else None,
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
