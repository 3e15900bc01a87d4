"""The check itself, at a service of its own: many chats with a few messages each, then one with very many."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.chats.lengths import Run, runs_of
from bench.chats.talking import Talk, plan_talks, read_all, talk_all
from bench.chats.truth import broken_promises
from bench.results import Single
from bench.scripted import AT_ONCE, ScriptedModel
from bench.service import OurService, make_catalog

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Amount:
    """`long` is the number of messages of the long chat; 0: there is none. `model`: a scripted model answers, instead of rules."""

    chats: int = 500
    messages: int = 5
    callers: int = 64
    long: int = 2_000
    model: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """`faults` are broken promises; `seconds` are of the many chats and of the long one."""

    amount: Amount
    faults: Sequence[str]
    runs: Sequence[Run]
    seconds: tuple[float, float]

    def singles(self) -> list[Single]:
        amount, (many_s, long_s) = self.amount, self.seconds
        many = f"{amount.chats} chats of {amount.messages} messages"
        singles = [
            Single(name="chats.faults", label=f"{many}: turns lost, repeated or out of order", value=len(self.faults), unit=""),
            Single(name="chats.rate", label=f"{many}: messages a second", value=amount.chats * amount.messages / many_s, unit="/s"),
        ]
        if not self.runs:
            return singles
        of_long = f"chat of {amount.long:,} messages"
        return [
            *singles,
            Single(name="chats.long.runs", label=f"{of_long}: runs of its workflow", value=len(self.runs), unit=""),
            Single(name="chats.long.events", label="events of its longest run", value=max(run.events for run in self.runs), unit=""),
            Single(name="chats.long.bytes", label="bytes of its largest run", value=max(run.bytes for run in self.runs) / _MB, unit="MB"),
            Single(name="chats.long.took", label=f"{of_long}, one after the other", value=long_s, unit="s"),
        ]


def check_chats(folder: Path, amount: Amount) -> Checked:
    """Raises NotReadyError and httpx.HTTPError."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        settings: dict[str, str] = {}
        if amount.model:
            model = ScriptedModel(folder, AT_ONCE)
            stack.callback(model.child.stop)
            settings |= model.settings
        service = OurService(folder / "service", make_catalog(folder / "data"), settings)
        stack.callback(service.stop)
        return asyncio.run(_checked(service, amount))


async def _checked(service: OurService, amount: Amount) -> Checked:
    many = plan_talks(amount.chats, amount.messages)
    faults, many_s = await _talked(service, many, amount.callers)
    if not amount.long:
        return Checked(amount, faults, (), (many_s, 0.0))
    long = Talk(len(many), "a long chat", plan_talks(1, amount.long)[0].said)
    more, long_s = await _talked(service, [long], 1)
    return Checked(amount, [*faults, *more], await runs_of(service.temporal, long.chat_id), (many_s, long_s))


async def _talked(service: OurService, talks: Sequence[Talk], callers: int) -> tuple[list[str], float]:
    begin = time.perf_counter()
    await talk_all(service.url, talks, callers)
    took = time.perf_counter() - begin
    kept = await read_all(service.url, talks)
    return [fault for talk in talks for fault in broken_promises(talk, kept[talk.chat_id])], took
