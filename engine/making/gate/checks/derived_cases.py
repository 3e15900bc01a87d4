"""Input that the tool's own schema allows neither crashes it nor makes it break its output schema."""

from dataclasses import dataclass, field

from engine.making.gate.subject import Came, Params, Reply, Subject, in_time, is_of_others, not_asked
from engine.making.gate.wording import in_one_line, listed, quoted
from engine.making.json_values import part
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
"""If so many cases all fail, the check stops."""
_FEW = 3


async def check(subject: Subject) -> CheckResult:
    """A tool may refuse a case with a 4xx, because a schema cannot express everything.

    A tool that we wrote must answer every other case. Faults of others' tools are reported. They only count if the process ends, or if
    the tool answered no case and failed more cases than it refused.
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
        # Others' servers get few requests; a result of very few is only reported.
        is_shown = not is_of_others(entry) or tried.done >= min(_FEW, whole)
        if tried.faults and (subject.written_by_us or tried.died or (tried.seems_broken and is_shown)):
            raised = await subject.trial.raised(name, before)
            faults[name] = f"{f'Its log ends with {raised}{chr(10)}' if raised else ''}{listed(tried.faults, subject.limits.told)}"
        else:
            doubts += tried.faults
    told = "; ".join([f"{asked} cases were tried", *said])
    if not asked and not faults:
        return not_asked(NAME, f"Not asked: {'; '.join(said)}.")
    whole = [f"{told}.", *faults.values(), *([f"It came well otherwise:\n{listed(doubts, subject.limits.told)}"] if doubts else [])]
    return CheckResult(check=NAME, passed=not faults, details="\n".join(whole), faults=faults)


def why_not(subject: Subject, entry: ToolEntry) -> str | None:
    """Why the tool gets no cases; None if it does."""
    name = entry.manifest.tool_id
    if not subject.may_be_probed(entry):
        if is_of_others(entry):
            return f"{name!r} is at a server of others, where the task allows made-up input to {_ALLOWED[subject.probe]}"
        return f"{name!r} may change something elsewhere, so it is given no made-up input"
    if mentions_format(as_probed(entry.manifest).input_schema, FILE_PATH):
        return f"{name!r} takes files, which are not made up"
    return None


def as_probed(manifest: ToolManifest) -> ToolManifest:
    """The manifest without optional files."""
    schema = manifest.input_schema
    properties, required = part(schema.get("properties")), schema.get("required", [])
    if not isinstance(required, list):
        return manifest
    left = {name: one for name, one in properties.items() if name in required or not _takes_file(one)}
    return manifest.model_copy(update={"input_schema": {**schema, "properties": left}}) if len(left) < len(properties) else manifest


async def _examples(manifest: ToolManifest) -> tuple[Params, ...]:
    """Examples of the tool's author that fit the schema. They know what it cannot express, such as that a text must be a number."""
    known = part(manifest.input_schema.get("properties"))
    said = [one.input for one in manifest.examples if one.input.keys() <= known.keys()]
    return tuple([one for one in said[:_FEW] if not await find_issues(manifest.input_schema, one)])


def _takes_file(schema: object) -> bool:
    one: JsonSchema = {"type": "object", "properties": {"value": schema}} if isinstance(schema, dict) else {}
    return mentions_format(one, FILE_PATH)


def _share(subject: Subject, entry: ToolEntry, number: int) -> int:
    """How many derived cases, and how many examples, a tool gets.

    Scripts share a few because each call starts a process: of very many, the first get one. Tools on others' servers share too.
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
    """`done` counts cases that were sent, `fine` those with a good result: `answered` or `refused`. `silent`: no answer in time.

    `said` are other remarks. `died`: the process ended. `why` is the tool's last refusal.
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
        """Refusals do not show that the tool works: it may find nothing under a made-up name."""
        return not self.fine or (not self.answered and self.done - self.refused > self.refused)

    def note(self, reply: Reply, case: Params, *, died: bool) -> None:
        self.done += 1
        self.died |= died
        self.silent += reply.came is Came.SILENCE
        self.answered += reply.came is Came.ANSWER and not died
        if reply.came is Came.REFUSAL:
            self.refused, self.why = self.refused + 1, reply.message
        if reply.came in _FINE and not died:
            self.fine += 1
            return
        came = f"It {reply.came}: {reply.message}" if reply.message else f"It {reply.came}."
        # The result goes first, because a long input is cut at the end.
        self.faults.append(f"{came}{' Its process ended.' if died else ''} Its input, which its schema allows: {quoted(case)}")


async def _tried(subject: Subject, entry: ToolEntry, cases: tuple[Params, ...]) -> _Tried:
    """Tries the cases until the time is up, or enough was seen."""
    tried, name = _Tried(), entry.manifest.tool_id
    if not await in_time(_try(subject, name, cases, tried), subject.limits.cases_s) and not tried.done:
        tried.faults.append(f"{name!r} was given a case, which took all of {subject.limits.cases_s:g} s.")
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
            # An unset key need not be given to the server yet.
            tried.said.append(f"{tool_id!r} {reply.came}: {reply.message}")
            return
        before, deaths = deaths, subject.trial.account().deaths
        tried.note(reply, case, died=deaths > before)
        if _is_enough(subject, tried):
            return


def _is_enough(subject: Subject, tried: _Tried) -> bool:
    if subject.written_by_us:
        return len(tried.faults) == subject.limits.told
    return tried.died or tried.silent == subject.limits.told or (not tried.fine and tried.done == _ENOUGH)
