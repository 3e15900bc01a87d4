"""The gate tells a maker only what it saw before the tool was shown the withheld examples."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.making.gate import CHECKS, with_checks
from engine.making.gate.judging import judge
from engine.making.gate.subject import Account, Came, Params, Reply, Subject
from engine.making.mending.poison import Poison
from engine.making.mending.replay import NAME, Recorded, Replay
from tests.making.gate.conftest import GIVEN, WITHHELD, DerivedOnce, entry_of
from toolagent.contracts.sandbox import SandboxAccount, SandboxGrant, SandboxLevel

RECORDED: Params = {"numbers": [5], "operation": "sum"}
SANDBOX = SandboxAccount(level=SandboxLevel.BUBBLEWRAP, requested=SandboxGrant(), enforced=SandboxGrant())


@dataclass
class Gossip:
    """An OnTrial that repeats earlier questions in all its answers."""

    heard: list[str] = field(default_factory=list[str])

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def health(self, tool_id: str, path: str) -> int | None:  # noqa: ARG002 - the protocol's
        return await asyncio.sleep(0, 200)

    async def call(self, tool_id: str, params: Params, *, withheld: bool = False) -> Reply:  # noqa: ARG002 - the protocol's
        return await self.send(tool_id, params)

    async def send(self, tool_id: str, content: Params | bytes) -> Reply:  # noqa: ARG002 - the protocol's
        self.heard.append(str(content))
        # What is told of it is cut.
        last = "".join(self.heard[-4:])
        return await asyncio.sleep(0, Reply(Came.ANSWER, {"result": 0, "count": 0, "heard": last}, last))

    async def kill(self, tool_id: str) -> bool:  # noqa: ARG002 - the protocol's
        return await asyncio.sleep(0, result=True)

    async def renew(self) -> None:
        await asyncio.sleep(0)

    def tell(self, progress: str) -> None:
        """Does nothing."""

    async def log_size(self, tool_id: str) -> int:  # noqa: ARG002 - the protocol's
        return await asyncio.sleep(0, 0)

    async def raised(self, tool_id: str, since: int) -> str:  # noqa: ARG002 - the protocol's
        return await asyncio.sleep(0, "")

    def account(self) -> Account:
        return Account(sandbox=SANDBOX)


@pytest.mark.promise("withheld-stays-withheld")
async def test_a_replay_of_recorded_calls_is_told_before_anything_is_withheld(folders: tuple[Path, Path]) -> None:
    entry, trial = entry_of(), Gossip()
    replay = Replay(entry.manifest, (Recorded(RECORDED, ({"result": 5, "count": 1},)),))
    subject = Subject((entry,), trial, DerivedOnce(folders[1]), given=GIVEN, withheld=WITHHELD)
    judgement = await judge(subject, checks=with_checks(first=Poison(entry.manifest), before_withheld=replay))
    assert len(judgement.checks) == len(CHECKS) + 2
    assert "heard" in next(check.details for check in judgement.checks if check.check == NAME)
    assert "70707" in "".join(trial.heard)
    assert not [secret for secret in ("70707", "90909") if secret in judgement.for_the_maker]
