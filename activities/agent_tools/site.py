"""The site where the functions of the coding role work."""

from dataclasses import dataclass
from typing import Protocol

from engine.making.workbench.bench import Workbench
from engine.making.workbench.proposal import Judge, Proposal, Submitted
from engine.runtimes.runtime import Progress
from toolagent.contracts.task_specs import MakeRuntime


class Submits(Protocol):
    """Implemented by `engine.making.workbench.proposals.Proposals`, which is not imported: the chain of imports would be too long."""

    async def submit(
        self, bench: Workbench, own: str, told: Proposal, *, is_there: bool = False, runtime: MakeRuntime | None = None
    ) -> Submitted: ...


@dataclass(frozen=True, slots=True)
class Site:
    """The site of one use. `own_tool` is the tool of the task; `is_repair`: it exists, and is repaired. `use` is the same in all attempts.

    `runtime` is the one that the task asks for. `remaining_s` is the rest of the agent's time; `beat` reports progress.
    """

    task_id: str
    own_tool: str
    is_repair: bool
    runtime: MakeRuntime | None
    use: str
    remaining_s: float
    bench: Workbench
    gate: Judge
    proposals: Submits
    beat: Progress
