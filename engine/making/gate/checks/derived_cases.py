"""Input that its own schema allows neither crashes it nor makes it break its output schema."""

import asyncio
from dataclasses import dataclass, field

from engine.making.gate.subject import Came, Params, Subject, is_of_others
from engine.making.gate.wording import in_one_line, listed, quoted
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.schemas import FILE_PATH, mentions_format
from toolagent.validation.schemas import find_issues

NAME = "derived cases"
_FINE = (Came.ANSWER, Came.REFUSAL)
_ALLOWED = {"none": "nothing", "safe": "what reads only and needs no key", "full": "all"}
_ENOUGH = 8
"""Cases of which none came well, after which no more is asked."""
_FEW = 3


async def check(subject: Subject) -> CheckResult:
    """To refuse a case with a 4xx is fine: a schema cannot say everything.

    What we wrote answers every case. A tool of others that fails one may do all that its callers want; it is told, and held to be
    broken when its process ends, or when it answered none and failed more of them than it refused.
    """
    said: list[str] = []
    faults: dict[str, str] = {}
    doubts: list[str] = []
    asked = 0
    for number, entry in enumerate(subject.each(NAME)):
        name, no = entry.manifest.tool_id, why_not(subject, entry)
        probed = as_probed(entry.manifest)
        examples, derived = (await _examples(probed), await subject.cases.of(probed)) if no is None else ((), ())
        share, whole = _share(subject, entry, number), len(examples) + len(derived)
        cases = (*examples[:share], *derived[:share])
        if not cases:
            if no is None and number >= subject.limits.script_cases:
                continue
            said.append(no or f"none could be derived from the input schema of {name!r}")
            continue
        before = await subject.trial.log_size(name)
        tried = await _tried(subject, entry, cases)
        asked += tried.done
        said += tried.said
        # A server of others is asked little: what it says to very few requests is only told.
        is_shown = not is_of_others(entry) or tried.done >= min(_FEW, whole)
        if tried.faults and (subject.written_by_us or tried.died or (tried.seems_broken and is_shown)):
            raised = await subject.trial.raised(name, before)
            faults[name] = f"{f'Its log ends with {raised}{chr(10)}' if raised else ''}{listed(tried.faults, subject.limits.told)}"
        else:
            doubts += tried.faults
    told = "; ".join([f"{asked} cases were tried", *said])
    if not asked and not faults:
        return CheckResult(check=NAME, passed=True, applies=False, details=f"Not asked: {'; '.join(said)}.")
    whole = [f"{told}.", *faults.values(), *([f"It came well otherwise:\n{listed(doubts, subject.limits.told)}"] if doubts else [])]
    return CheckResult(check=NAME, passed=not faults, details="\n".join(whole), faults=faults)


def why_not(subject: Subject, entry: ToolEntry) -> str | None:
    """Why it is given no cases."""
    name = entry.manifest.tool_id
    if not subject.may_be_probed(entry):
        if is_of_others(entry):
            return f"{name!r} is at a server of others, where the task allows made-up input to {_ALLOWED[subject.probe]}"
        return f"{name!r} may change something elsewhere, so it is given no made-up input"
    if mentions_format(as_probed(entry.manifest).input_schema, FILE_PATH):
        return f"{name!r} takes files, which are not made up"
    return None


def as_probed(manifest: ToolManifest) -> ToolManifest:
    """The same without the files that it need not be given."""
    schema = manifest.input_schema
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return manifest
    left = {name: one for name, one in properties.items() if name in required or not _takes_file(one)}
    return manifest.model_copy(update={"input_schema": {**schema, "properties": left}}) if len(left) < len(properties) else manifest


async def _examples(manifest: ToolManifest) -> tuple[Params, ...]:
    """What its author calls it with, where its schema allows that: of a text that has to be a number the schema may say nothing."""
    names = manifest.input_schema.get("properties")
    known = names if isinstance(names, dict) else {}
    said = [one.input for one in manifest.examples if one.input.keys() <= known.keys()]
    return tuple([one for one in said[:_FEW] if not await find_issues(manifest.input_schema, one)])


def _takes_file(schema: object) -> bool:
    one: JsonSchema = {"type": "object", "properties": {"value": schema}} if isinstance(schema, dict) else {}
    return mentions_format(one, FILE_PATH)


def _share(subject: Subject, entry: ToolEntry, number: int) -> int:
    """How many are derived; it is given no more examples. Each call of a script is a process of its own: all share a few, of very many
    the first get one.

    What goes to servers of others is shared too.
    """
    if is_of_others(entry):
        return min(subject.limits.cases, max(1, subject.remote_share(subject.limits.remote_cases)))
    traits = entry.sources[0].traits
    if subject.written_by_us or traits.stays_up or not traits.on_host:
        return subject.limits.cases
    if number >= subject.limits.script_cases:
        return 0
    return max(1, subject.limits.script_cases // len(subject.entries))


@dataclass(slots=True)
class _Tried:
    """`done` counts those that were sent, `fine` those that came well, `answered` and `refused` those of them that it answered or refused.

    `said` is what else is to be told. `died`: its process ended. `why` is what it said to the last one that it refused.
    """

    done: int = 0
    fine: int = 0
    answered: int = 0
    refused: int = 0
    why: str = ""
    died: bool = False
    silent: int = 0
    faults: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])

    @property
    def seems_broken(self) -> bool:
        """One that refuses a case may find nothing under a made-up name, and fail at others all the same."""
        return not self.fine or (not self.answered and self.done - self.refused > self.refused)


async def _tried(subject: Subject, entry: ToolEntry, cases: tuple[Params, ...]) -> _Tried:
    """Until the time is up, or enough was seen."""
    tried, name = _Tried(), entry.manifest.tool_id
    over = asyncio.timeout(subject.limits.cases_s)
    try:
        async with over:
            await _try(subject, name, cases, tried)
    except TimeoutError:
        if not over.expired():  # not this one
            raise
        tried.faults += [f"{name!r} was given a case, which took all of {subject.limits.cases_s:g} s."] if not tried.done else []
    if tried.done and tried.refused == tried.done:
        tried.said.append(f"{name!r} refused all of its {tried.done}, the last with {in_one_line(tried.why)}")
    if not (tried.done or tried.faults or tried.said):
        tried.said.append(f"no case of {name!r} can be written into a request")
    return tried


async def _try(subject: Subject, tool_id: str, cases: tuple[Params, ...], tried: _Tried) -> None:
    deaths = subject.trial.account().deaths
    for case in cases:
        reply = await subject.trial.call(tool_id, case)
        if reply.came is Came.UNSENDABLE:
            continue
        if reply.came in (Came.KEYLESS, Came.SPARED):
            # The server need not be trusted with a key yet.
            tried.said.append(f"{tool_id!r} {reply.came}: {reply.message}")
            return
        tried.done += 1
        before, deaths = deaths, subject.trial.account().deaths
        died = deaths > before
        tried.died |= died
        tried.silent += reply.came is Came.SILENCE
        tried.fine += reply.came in _FINE and not died
        tried.answered += reply.came is Came.ANSWER and not died
        if reply.came is Came.REFUSAL:
            tried.refused, tried.why = tried.refused + 1, reply.message
        if reply.came not in _FINE or died:
            came = f"It {reply.came}: {reply.message}" if reply.message else f"It {reply.came}."
            ended = ("Its process ended.",) if died else ()
            # What came of it first: a long input is cut where only the beginning is shown.
            tried.faults.append(" ".join((came, *ended, f"Its input, which its schema allows: {quoted(case)}")))
        if _is_enough(subject, tried):
            return


def _is_enough(subject: Subject, tried: _Tried) -> bool:
    if subject.written_by_us:
        return len(tried.faults) == subject.limits.told
    return tried.died or tried.silent == subject.limits.told or (not tried.fine and tried.done == _ENOUGH)
