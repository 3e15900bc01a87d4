"""A check of repairs: repeats successful calls of the tool and compares the answers."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pydantic import JsonValue

from engine.making.gate.subject import Came, Params, Reply, Subject, not_asked
from engine.making.gate.wording import listed, quoted
from engine.store.file_references import named_files
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.records import CallRecord
from toolagent.contracts.task_specs import Example
from toolagent.core.calls.masking import masked_params, masked_text
from toolagent.core.catalog.expectations import unexpected
from toolagent.core.schemas import FILE_PATH, MASK, mask_secrets, values_of_format, with_defaults
from toolagent.validation.schemas import issues_of

NAME = "recorded calls"

_PLACES = 3
SECRET = "held a secret, which is not kept"  # noqa: S105 - why a call is left out
_FILES = "named files"
_HIDDEN = "something that is not shown, since there is a secret in the result,"
_LARGE = "had a result too large to be kept beside it"
_UNFIT = "do not fit the input schema in the tool's test mode"
_EXAMPLE = "are in the task's examples, which say what has to come"

_NAME = "result"


@dataclass(frozen=True, slots=True)
class ReplayLimits:
    """At most `calls` different calls, from the `looked_at` newest, within `wall_s` seconds."""

    looked_at: int = 200
    calls: int = 25
    wall_s: float = 60.0
    told: int = 3


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call by its parameters, with all its different results.

    `is_new`: it was never made in test mode; the results are those of calls without it.
    """

    params: Params
    results: tuple[JsonValue, ...]
    is_new: bool = False

    @property
    def is_steady(self) -> bool:
        return len(self.results) == 1


@dataclass(frozen=True, slots=True)
class Replay:
    """A Check. The manifest of the `present` version decides whether calls may be repeated."""

    present: ToolManifest
    calls: tuple[Recorded, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    limits: ReplayLimits = field(default_factory=ReplayLimits)

    async def __call__(self, subject: Subject) -> CheckResult:
        """Each call has to succeed with the same result. If results differed, or the call is new, the output schema has to allow it."""
        omitted = omissions(self.left_out)
        if _acts(self.present) and self.present.test_mode is None:
            scope = self.present.side_effect_scope.value
            return not_asked(
                NAME, f"A call may change something (side_effect_scope {scope!r}) and there is no test_mode, so none was made again."
            )
        if not self.calls:
            return not_asked(NAME, f"There is no recorded call that could be made again. {omitted}".strip())
        asked, faults, over_at = 0, list[str](), time.monotonic() + self.limits.wall_s
        for call in self.calls:
            if time.monotonic() > over_at:
                break
            asked += 1
            reply = await subject.trial.call(self.present.tool_id, call.params)
            fault = await asyncio.to_thread(_fault, self.present, call, reply)
            faults += [fault] if fault else []
        counted = f"{asked - len(faults)} of {asked} calls were answered as before."
        unasked = f"For lack of time {len(self.calls) - asked} more were not made." if asked < len(self.calls) else ""
        details = "\n".join(filter(None, (counted, unasked, omitted, listed(faults, self.limits.told))))
        return CheckResult(check=NAME, passed=not faults, details=details)


def omissions(left_out: Mapping[str, int]) -> str:
    """A sentence with the number of entries that are left out, by reason; empty if there are none."""
    return f"Left out: {'; '.join(f'{count} {why}' for why, count in left_out.items())}." if left_out else ""


def recorded_calls(
    present: ToolManifest,
    records: Iterable[CallRecord],
    versions: Sequence[str],
    examples: Sequence[Example] = (),
    limits: ReplayLimits | None = None,
) -> Replay:
    """The successful calls of a tool that can be repeated, the newest first.

    Answers of `versions` count; if the present version answered the same parameters, only its answers do. Calls that would change
    something get the parameters of the test mode.
    """
    limits, schema = limits or ReplayLimits(), present.input_schema
    hidden = [as_asked(present, as_recorded(schema, example.input)) for example in examples]
    omitted: Counter[str] = Counter()
    found: dict[str, list[CallRecord]] = {}
    for record in records:
        if record.version not in versions or record.result is None:
            continue
        asked = as_asked(present, record.params)
        if why := _EXAMPLE if as_recorded(schema, asked) in hidden else _unusable(present, record, asked):
            omitted[why] += 1
        else:
            found.setdefault(_key(asked), []).append(record)
    calls = [_of(present, same) for same in found.values()]
    return Replay(present, tuple(calls[: limits.calls]), dict(omitted), limits)


def as_recorded(schema: JsonSchema, params: Params) -> Params:
    """The parameters as in the record of a call."""
    return mask_secrets(schema, with_defaults(schema, params))


def _acts(present: ToolManifest) -> bool:
    return present.side_effect_scope is not SideEffectScope.NONE


def as_asked(present: ToolManifest, params: Params) -> Params:
    """The parameters, in test mode if a call would change something."""
    return {**params, **(present.test_mode or {})} if _acts(present) else params


def _of(present: ToolManifest, records: Sequence[CallRecord]) -> Recorded:
    asked = as_asked(present, records[0].params)
    made = [record for record in records if _key(record.params) == _key(asked)]
    same = made or records
    own = [record for record in same if record.version == present.version] or same
    different = {_key(record.result.result): record.result.result for record in own if record.result}
    return Recorded(asked, tuple(different.values()), is_new=not made)


def _unusable(present: ToolManifest, record: CallRecord, asked: Params) -> str:
    result = record.result
    if result is None or result.is_reference:
        return _LARGE
    if is_masked(record.params) or holds_secret(present.output_schema, result.result):
        return SECRET
    names_files = (
        any(values_of_format(present.input_schema, record.params, FILE_PATH))
        or any(values_of_format(present.output_schema, result.result, FILE_PATH))
        or named_files(_key(record.params), _key(result.result))
    )
    if names_files:
        return _FILES
    return _UNFIT if asked != record.params and any(issues_of(present.input_schema, asked)) else ""


def is_masked(value: JsonValue) -> bool:
    """Whether a secret in it is masked."""
    match value:
        case dict():
            return any(map(is_masked, value.values()))
        case list():
            return any(map(is_masked, value))
        case _:
            return value == MASK


def _fault(present: ToolManifest, call: Recorded, reply: Reply) -> str:
    """The differences, with secrets masked; empty if there are none."""
    asked = f"With input {quoted(masked_params(present.input_schema, call.params))}"
    if reply.came is not Came.ANSWER:
        before = f", and {_shown(call.results[0])} came before" if call.is_steady and not call.is_new else ""
        return f"{asked}: it {reply.came}: {masked_text(reply.message)}{before}"
    if call.is_new:
        misfit = _misfit(present, call, reply.output)
        return f"{asked}, which are in its test mode: {misfit}" if misfit else ""
    if not call.is_steady:
        return ""
    places = islice(_different(call.results[0], reply.output), _PLACES)
    # The earlier result holds no secret, or the call would be left out.
    tells = not holds_secret(present.output_schema, reply.output)
    told = "; ".join(f"at {path} {_shown(before)} came before and {_shown(now) if tells else _HIDDEN} now" for path, before, now in places)
    return f"{asked}: {told}" if told else ""


def _misfit(present: ToolManifest, call: Recorded, output: JsonValue) -> str:
    """Where the form of a result differs from earlier results; without values."""
    places = dict.fromkeys(issue.path for issue in issues_of(present.output_schema, output))
    if places:
        return f"the result is not what the output schema in use allows, at {', '.join([*places][:_PLACES])}"
    if present.output_schema or any(_form(before) == _form(output) for before in call.results):
        return ""
    return f"the result is {_form(output)}, and {' or '.join(dict.fromkeys(map(_form, call.results)))} came before"


def _form(value: JsonValue) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str():
            return "a text"
        case bool():
            return "true or false"
        case None:
            return "null"
        case _:
            return "a number"


def _different(before: JsonValue, now: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """All differences, also new fields, which a reader of the result may not expect."""
    places = {path: (path, one, other) for path, one, other in unexpected(before, now)}
    yield from places.values()
    yield from ((path, other, one) for path, one, other in unexpected(now, before) if path not in places)


def _shown(value: JsonValue) -> str:
    return masked_text(quoted(masked_params({}, {"": value}).get("")))


def _key(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def holds_secret(schema: JsonSchema, result: JsonValue) -> bool:
    """Whether the result holds a secret, by its schema, by names in it, or by its form."""
    whole: Params = {_NAME: result}
    return mask_secrets({"properties": {_NAME: schema}}, whole) != whole or _tells(result)


def _tells(value: JsonValue) -> bool:
    match value:
        case str():
            return masked_text(value) != value
        case list():
            return any(map(_tells, value))
        case dict():
            return any(_is_named(name, inner) or _tells(inner) for name, inner in value.items())
        case _:
            return False


def _is_named(name: str, inner: JsonValue) -> bool:
    """Whether the name is that of a secret. A number or a truth value is none."""
    return isinstance(inner, str | list | dict) and MASK in masked_params({}, {name: ""}).values()
