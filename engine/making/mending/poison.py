"""Inputs that ended the process of the version that is to be replaced: asked of a repair before everything else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from engine.making.gate.subject import Came, Params, Subject
from engine.making.gate.wording import listed, quoted
from engine.making.mending.replay import as_asked, as_recorded, is_masked
from engine.store.file_references import named_files
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.quarantine import QuarantinedInput
from toolagent.contracts.task_specs import Example
from toolagent.core.calls.masking import masked_params, masked_text
from toolagent.core.schemas import FILE_PATH, values_of_format

NAME = "quarantined input"

_MOST = 10
_SECRET = "held a secret, which is not kept"  # noqa: S105 - why an input is left out
_FILES = "named files"
_LARGE = "too large to be kept"
_EXAMPLE = "in the task's examples, which say what has to come"


@dataclass(frozen=True, slots=True)
class Poison:
    """A Check. `present` is the version that is to be replaced."""

    present: ToolManifest
    inputs: tuple[Params, ...] = ()
    left_out: Mapping[str, int] | None = None

    async def __call__(self, subject: Subject) -> CheckResult:
        """Each has to be answered, or refused as wrong input; the tool lives on."""
        omitted = "; ".join(f"{count} {why}" for why, count in (self.left_out or {}).items())
        told = f"Left out: {omitted}." if omitted else ""
        if not self.inputs:
            return CheckResult(check=NAME, passed=True, applies=False, details=f"There is none that could be asked. {told}".strip())
        if self.present.test_mode is None and not all(map(subject.may_be_probed, subject.entries)):
            details = "A call may change something outside of the sandbox and there is no test_mode, so none was made."
            return CheckResult(check=NAME, passed=True, applies=False, details=details)
        faults: list[str] = []
        for params in self.inputs:
            reply = await subject.trial.call(self.present.tool_id, params)
            if reply.came not in (Came.ANSWER, Came.REFUSAL):
                given = quoted(masked_params(self.present.input_schema, params))
                faults.append(f"With input {given}, which ended its process before: it {reply.came}: {masked_text(reply.message)}")
        counted = f"{len(self.inputs) - len(faults)} of {len(self.inputs)} inputs that ended its process before were answered."
        return CheckResult(check=NAME, passed=not faults, details="\n".join(filter(None, (counted, told, listed(faults, _MOST)))))


def poison_of(present: ToolManifest, quarantined: Iterable[QuarantinedInput], examples: Sequence[Example] = ()) -> Poison:
    """The newest first, without those that cannot be asked again."""
    hidden = [as_recorded(present.input_schema, example.input) for example in examples]
    inputs, left_out = list[Params](), dict[str, int]()
    for one in quarantined:
        asked = as_asked(present, one.params or {})
        if why := _unusable(present, one.params, hidden, asked):
            left_out[why] = left_out.get(why, 0) + 1
        elif asked not in inputs and len(inputs) < _MOST:
            inputs.append(asked)
    return Poison(present, tuple(inputs), left_out)


def _unusable(present: ToolManifest, params: dict[str, JsonValue] | None, hidden: Sequence[Params], asked: Params) -> str:
    if params is None:
        return _LARGE
    if is_masked(params):
        return _SECRET
    if as_recorded(present.input_schema, asked) in hidden:
        return _EXAMPLE
    return _FILES if any(values_of_format(present.input_schema, params, FILE_PATH)) or named_files(quoted(params)) else ""
