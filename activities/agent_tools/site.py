"""What the tools of the coding role work with."""

from dataclasses import dataclass
from typing import Protocol

from engine.making.workbench.bench import Workbench
from engine.making.workbench.proposal import Judge, Proposal, PutDown
from engine.runtimes.runtime import Progress
from toolagent.contracts.task_specs import MakeRuntime


class PutsDown(Protocol):
    """`engine.making.workbench.proposals.Proposals` does; its docstring says what is raised."""

    async def put_down(
        self, bench: Workbench, own: str, told: Proposal, *, is_there: bool = False, runtime: MakeRuntime | None = None
    ) -> PutDown: ...


@dataclass(frozen=True, slots=True)
class Site:
    """`own_tool` is the id that the task is about, `is_repair`: it is there, and to be mended. `use` names this use in all attempts.

    `runtime` is the one that the task asks for. `remaining_s` is what is left of the agent's time; `beat` tells people what is being done.
    """

    task_id: str
    own_tool: str
    is_repair: bool
    runtime: MakeRuntime | None
    use: str
    remaining_s: float
    bench: Workbench
    gate: Judge
    proposals: PutsDown
    beat: Progress
