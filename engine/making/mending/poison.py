"""A check of repairs: inputs that ended the process of the present version."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from engine.making.gate.subject import Came, Params, Subject, not_asked
from engine.making.gate.wording import listed, quoted
from engine.making.mending.replay import SECRET, as_asked, as_recorded, is_masked, omissions
from engine.store.file_references import named_files
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.quarantine import QuarantinedInput
from toolagent.contracts.task_specs import Example
from toolagent.core.calls.masking import masked_params, masked_text
from toolagent.core.schemas import FILE_PATH, values_of_format

NAME = "quarantined input"

_MOST = 10
_FILES = "named files"
_LARGE = "too large to be kept"
_EXAMPLE = "in the task's examples, which say what has to come"


@dataclass(frozen=True, slots=True)
class Poison:
    """A Check. `present` is the version that the repair replaces."""

    present: ToolManifest
    inputs: tuple[Params, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    async def __call__(self, subject: Subject) -> CheckResult:
        """The tool has to answer each input or refuse it as wrong, and its process has to go on."""
        told = omissions(self.left_out)
        if not self.inputs:
            return not_asked(NAME, f"There is none that could be asked. {told}".strip())
        if self.present.test_mode is None and not all(map(subject.may_be_probed, subject.entries)):
            return not_asked(NAME, "A call may change something outside of the sandbox and there is no test_mode, so none was made.")
        faults: list[str] = []
        for params in self.inputs:
            reply = await subject.trial.call(self.present.tool_id, params)
            if reply.came not in (Came.ANSWER, Came.REFUSAL):
                given = quoted(masked_params(self.present.input_schema, params))
                faults.append(f"With input {given}, which ended its process before: it {reply.came}: {masked_text(reply.message)}")
        counted = f"{len(self.inputs) - len(faults)} of {len(self.inputs)} inputs that ended its process before were answered."
        return CheckResult(check=NAME, passed=not faults, details="\n".join(filter(None, (counted, told, listed(faults, _MOST)))))


def poison_of(present: ToolManifest, quarantined: Iterable[QuarantinedInput], examples: Sequence[Example] = ()) -> Poison:
    """The inputs that can be asked again, the newest first."""
    hidden = [as_recorded(present.input_schema, example.input) for example in examples]
    inputs, left_out = list[Params](), Counter[str]()
    for one in quarantined:
        asked = as_asked(present, one.params or {})
        if why := _unusable(present, one.params, hidden, asked):
            left_out[why] += 1
        elif asked not in inputs and len(inputs) < _MOST:
            inputs.append(asked)
    return Poison(present, tuple(inputs), left_out)


def _unusable(present: ToolManifest, params: dict[str, JsonValue] | None, hidden: Sequence[Params], asked: Params) -> str:
    if params is None:
        return _LARGE
    if is_masked(params):
        return SECRET
    if as_recorded(present.input_schema, asked) in hidden:
        return _EXAMPLE
    return _FILES if any(values_of_format(present.input_schema, params, FILE_PATH)) or named_files(quoted(params)) else ""
