"""What makes tools on this host, made from settings."""

from activities.follow_task import FollowTask
from activities.make_tool import MakeTool
from engine.calls.file_parameters import FileParameters
from engine.making.candidates import Candidates
from engine.making.cloning import Cloner
from engine.making.gate.trial import sweep_trials
from engine.making.locking import ProjectLocks
from engine.making.maker import Maker, MakerParts
from engine.making.registration import Registration
from engine.runtimes.scripts.environments import Installer
from engine.runtimes.scripts.execution import Executor
from engine.runtimes.scripts.network import through
from workers.parts import Store
from workers.runtimes import HostRuntimes
from workers.scripts import indexes_of, programs_of
from workers.settings import Settings, environment
from workers.state import StateDirectory
from workers.temporal_workers import MakingActivities

__all__ = ["making_of", "swept_tasks"]


async def swept_tasks(_: Settings, state: StateDirectory) -> None:
    """What a dead worker left of trials. Folders of tasks stay: their steps go on from them."""
    await sweep_trials(state.root)


def making_of(store: Store, settings: Settings, state: StateDirectory, runs: HostRuntimes) -> MakingActivities:
    """The steps of tasks, as this host does them."""
    parts = runs.parts
    programs, everything = programs_of(settings), environment()
    executor = Executor(parts.launcher, parts.sandboxing.sandbox)
    sandbox = parts.sandboxing.sandbox
    installing = through(parts.sandboxing.egress, trusted=True, is_apart=isinstance(sandbox, str) or sandbox.level.has_own_network)
    installer = Installer(indexes_of(programs, everything), installing, settings.tool_start_timeout_s)
    maker = Maker(
        MakerParts(
            folder=state.root / "making",
            cache=state.root / "making" / ".cases",
            runtimes=parts,
            cloner=Cloner(executor, runs.network, schemes=settings.repo_schemes, path=everything.get("PATH")),
            locks=ProjectLocks(executor, programs, installer),
            candidates=Candidates(store.database, store.files),
            registration=Registration(store.registry, store.groups, store.evidence),
            files=FileParameters(store.files, settings.files_folder.absolute()),
        )
    )
    follow = FollowTask(store.tasks, state.host, most=settings.max_coding_tasks, rounds=settings.coding_rounds)
    return MakingActivities(follow, MakeTool(maker, store.tasks))
