"""Makes tools on this host."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from activities.agents.coding import CodingRole
from activities.agents.models import Models
from activities.agents.opening import Openings
from activities.answer_turn import AnswerTurn
from activities.ask_model import AskModel
from activities.brief_agent import BriefAgent
from activities.chats import Chats
from activities.follow_task import FollowTask
from activities.make_tool import MakeTool
from activities.use_tool import UseTool
from engine.calling.dialogues import Sampling
from engine.calling.intake import Intake
from engine.calling.sampling import ModelSampling
from engine.calls.file_parameters import FileParameters
from engine.making.build_ways import WaysParts
from engine.making.candidates import Candidates
from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.index_addresses import addresses_from
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from engine.making.evidence import Accounts
from engine.making.gate.trial import sweep_trials
from engine.making.maker import Maker, MakerParts
from engine.making.mending.diagnosis import Diagnoses, DiagnosisParts
from engine.making.mending.repairs import Repairs
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.registration import Registration
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.making.workbench.bench import Workbenches
from engine.making.workbench.proposals import Proposals
from engine.making.workbench.runs import BenchParts
from engine.roles.prices import PriceFileError, Prices
from engine.roles.prompts import Prompts
from engine.roles.provider import ModelProvider
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers import PROVIDERS
from engine.runtimes.docker.building.containers import BuildContainers
from engine.store.call_outcomes import CallOutcomes
from engine.store.tool_alerts import ToolAlerts
from engine.tasks.log import TaskLog
from engine.tasks.states import TaskStates
from engine.tasks.subjects import Subjects
from engine.tasks.transcript import Transcript
from engine.upkeep.removal.tasks import TaskSweep, sweeping_tasks
from engine.upkeep.sessions.providers import ProviderSweep, sweeping_providers
from engine.upkeep.sessions.sweep import SessionSweep, sweeping_sessions
from engine.upkeep.tools.repairs import RepairPolicy, RepairsFromProduction, RepairTables
from toolagent.client.making import Making
from toolagent_service.contracts.agent import AgentLimits
from toolagent_service.making.repair_rule import RepairRules
from workers.failures import CannotRun, cannot_run_on
from workers.host.chats import chats_of
from workers.host.cloning import cloner_of
from workers.host.dependencies import dependency_policy_of
from workers.host.runtimes import HostRuntimes
from workers.settings.making import CodingSettings, ModelSettings
from workers.settings.tools import SHIPPED_DATA, CatalogSettings
from workers.storage import Store
from workers.temporal.activities import MakingActivities
from workers.temporal.session_workflows import SessionWorkflows
from workers.temporal.workflow_ends import WorkflowEnds

_NO_ENGINE = "There is no Docker engine on this host."


@asynccontextmanager
async def running_making(
    store: Store,
    client: Client,
    runs: HostRuntimes,
    builds: BuildContainers | None,
    intake: Intake,
) -> AsyncGenerator[MakingActivities]:
    """The activities of tasks and conversations on this host. Raises CannotRun if a setting or file of theirs cannot be used."""
    settings, state = store.settings, store.state
    folder, parts, tooling = state.root / "making", runs.parts, runs.tooling
    # Remove the trials of a dead worker. Folders of tasks that go on stay, because their steps continue in them.
    await sweep_trials(state.root)
    executor, programs, installer = tooling.executor, tooling.programs, tooling.installer
    uv_runs = UvRuns(executor, programs, installer)
    locks = ProjectLocks(uv_runs)
    candidates = Candidates(store.database, store.files)
    registration = Registration(store.registry, store.groups, store.evidence)
    async with AsyncExitStack() as stack:
        benches = Workbenches(folder, BenchParts(parts.launcher, executor, programs, installer), builds or _NO_ENGINE)
        stack.push_async_callback(benches.close)
        sweep = TaskSweep(WorkflowEnds(client), store.tasks, store.evidence, benches, parts.sandboxing.environments, state.host)
        # Tasks may have ended, or moved to another host, while this one was away.
        await sweep.clear()
        await stack.enter_async_context(sweeping_tasks(sweep))
        workflows = SessionWorkflows(client)
        await stack.enter_async_context(sweeping_sessions(SessionSweep(store.sessions, workflows, store.events)))
        is_kept_up = store.residents.is_kept_up
        providers = ProviderSweep(store.groups, store.sessions, store.calls, store.events, workflows, workflows.listed, is_kept_up)
        await stack.enter_async_context(sweeping_providers(providers))
        index = SimpleIndex(addresses_from(tooling.indexes))
        stack.push_async_callback(index.aclose)
        gate = DependencyGate(
            dependency_policy_of(settings.coding), index, PopularPackages.read(_data(settings.catalog, "popular_packages.txt"))
        )
        maker = Maker(
            MakerParts(
                folder=folder,
                cache=folder / ".cases",
                runtimes=parts,
                cloner=cloner_of(settings.repositories, state, parts.launcher, tooling),
                ways=WaysParts(executor, uv_runs, locks, NpmRuns(executor, programs, installer), gate),
                candidates=candidates,
                registration=registration,
                files=FileParameters(store.files, settings.state.files_folder.absolute()),
                benches=benches,
                diagnoses=Diagnoses(
                    DiagnosisParts(store.registry, store.routes, store.calls, store.quarantine, benches, parts.projects, state.root)
                ),
                repairs=Repairs(store.registry, store.calls, store.evidence, store.quarantine),
                accounts=Accounts(store.tasks, store.turns),
            )
        )
        provider = _provider(settings.model)
        if provider is not None:
            stack.push_async_callback(provider.aclose)
        models = Models(provider, Prompts(_data(settings.catalog, "prompts")), _prices(settings.catalog))
        transcript = Transcript(store.messages, store.outcomes, store.turns, store.notes, store.tasks)
        openings = Openings(models, transcript)
        service, conversations = chats_of(store, settings.chats, client, models, openings)
        coding = CodingRole(benches, gate, Proposals(gate, locks, candidates, registration.is_anothers), Subjects(store.tasks))
        limit = settings.coding.max_coding_tasks
        follow = FollowTask(TaskStates(store.tasks, store.hosts, state.host, most=limit, is_open=lambda: intake.is_open))
        make = MakeTool(maker, TaskLog(store.tasks, store.notes, store.events))
        brief = BriefAgent(openings, coding, _allowed(settings.coding))
        roles = (coding, service)
        asking, chats = AskModel(models, transcript, roles), Chats(conversations)
        models_turn = (asking.ask_model, UseTool(transcript, roles).use_tool)
        yield MakingActivities(
            local=(
                follow.enter_stage,
                follow.end_task,
                follow.find_host,
                *chats.steps,
            ),
            chats=(*models_turn, AnswerTurn(asking, conversations).answer_turn, chats.await_task, *chats.steps),
            asked=(follow.await_slot,),
            steps=(
                make.inspect_task,
                make.diagnose,
                make.lay_out,
                make.build_candidate,
                make.verify_candidate,
                make.register_candidate,
                make.clear_task,
                brief.brief_agent,
                *models_turn,
            ),
        )


@asynccontextmanager
async def running_sampling(store: Store) -> AsyncGenerator[Sampling | None]:
    """Our model for tools that ask a model, until the block ends; None if no model is set."""
    provider = _provider(store.settings.model)
    if provider is None:
        yield None
        return
    async with aclosing(provider):
        yield ModelSampling(provider, _prices(store.settings.catalog), store.turns).answer


def repairs_of(store: Store, client: Client) -> RepairsFromProduction:
    """Starts repairs of tools whose calls fail."""
    settings, of = store.settings, store.settings.repairs
    return RepairsFromProduction(
        RepairTables(
            CallOutcomes(store.database), ToolAlerts(store.database), store.quarantine, store.repairs, store.registry, store.tasks
        ),
        Making(client),
        RepairPolicy(
            RepairRules(of.repair_after_failures, of.repair_pause_s, of.repairs_per_day),
            of.repair_meanwhile,
            has_model=settings.model.model is not None,
            at_once=settings.coding.max_coding_tasks,
        ),
    )


def _provider(settings: ModelSettings) -> ModelProvider | None:
    if settings.model is None:
        return None
    if settings.model_provider not in PROVIDERS:
        raise CannotRun(f"TOOL_AGENT_MODEL_PROVIDER is {settings.model_provider!r}; there are: {', '.join(PROVIDERS)}.")
    key = settings.model_api_key.get_secret_value() if settings.model_api_key else None
    return PROVIDERS[settings.model_provider](ProviderOptions(settings.model, key, settings.model_base_url))


def _prices(settings: CatalogSettings) -> Prices:
    with cannot_run_on(PriceFileError):
        return Prices.read(_data(settings, "prices.json"))


def _data(settings: CatalogSettings, name: str) -> Path:
    """A file of the data folder; the shipped one if the folder does not have it."""
    own = settings.data_dir / name
    return own if own.exists() else SHIPPED_DATA / name


def _allowed(settings: CodingSettings) -> AgentLimits:
    return AgentLimits(
        turns=settings.coding_turns,
        wall_s=settings.coding_wall_s,
        tokens=settings.coding_tokens,
        cost_usd=settings.coding_limit_usd,
        rounds=settings.coding_rounds,
    )
