"""Decides whether a script succeeded: exit code 0 and one JSON value on stdout.

Its stderr decides nothing (ADR 0023).
"""

import signal
from dataclasses import dataclass

from pydantic import JsonValue

from engine.runtimes.environments.execution import Execution
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.http.json_answers import MAX_RESULT_VALUES, TooMuchError, read_json
from engine.runtimes.process.box import MOST_LEVELS, UNCOUNTED
from engine.runtimes.process.processes import exit_text
from engine.runtimes.scripts.progress import without_progress
from toolagent.contracts.sandbox import SandboxLimits

_TOLD_BYTES = 8 * 1024
_SHOWN_BYTES = 2 * 1024
_LINES, _LINE = 200, 2000
_BY_SIGNAL = 128


@dataclass(frozen=True, slots=True)
class ScriptReply:
    """The script's output, and its stderr as `logs`, cut with a note. `truncated` names the streams that were cut."""

    output: JsonValue
    logs: tuple[str, ...]
    truncated: tuple[str, ...] = ()


def verdict(done: Execution, limits: SandboxLimits, wall_s: float, max_values: int = MAX_RESULT_VALUES) -> ScriptReply:
    """Raises ScriptFailure."""
    stderr = without_progress(done.stderr.decode(errors="replace")).strip("\n") + ("…" if done.cut == "stderr" else "")
    failure = _limit(done, limits, wall_s) or _end(done)
    if failure is None:
        try:
            output = read_json(done.stdout, max_values)
        except ValueError as error:
            failure = _no_json(done, error)
        else:
            return ScriptReply(output, _lines(stderr), ("stderr",) if len(_lines(stderr)) > _LINES else ())
    kind, message, facts = failure
    wrote = done.stdout.decode(errors="replace").strip("\n")
    logs = (*_lines(stderr), *(_lines(_cut(wrote, _SHOWN_BYTES)) if wrote else ()))
    shown: dict[str, JsonValue] = {"stdout": _cut(wrote, _SHOWN_BYTES)} if kind is ScriptErrorKind.OUTPUT else {}
    raise ScriptFailure(kind, message, {**facts, **shown}, told=_tail(stderr), logs=logs, ran=True)


_Failure = tuple[ScriptErrorKind, str, dict[str, JsonValue]]


def _limit(done: Execution, limits: SandboxLimits, wall_s: float) -> _Failure | None:
    """The limit for which the script was ended, or after which it failed."""
    if done.cut == "time":
        return ScriptErrorKind.TIMEOUT, "Script execution timed out.", {"timeout_s": wall_s, "cause": "time"}
    if done.cut is not None:
        message = f"The script wrote more than {limits.output_bytes} bytes on {done.cut} and was ended."
        return ScriptErrorKind.RESOURCE, message, {"cause": "output", "stream": done.cut, "limit": limits.output_bytes}
    if done.code == 0:
        return None
    file_bytes = done.code == _BY_SIGNAL + signal.SIGXFSZ or b"File too large" in done.stderr
    by_cause: dict[str, tuple[bool, str, JsonValue]] = {
        "memory": (done.ending.out_of_memory, "took more memory than it may", limits.memory_bytes),
        "processes": (done.ending.processes_refused, "started more processes than it may", limits.processes),
        "levels": (done.ending.disk_hidden, f"made {UNCOUNTED}", MOST_LEVELS),
        "disk": (done.ending.disk_full or b"No space left on device" in done.stderr, "wrote more than it may", limits.disk_bytes),
        "file": (file_bytes, "wrote a larger file than it may", limits.file_bytes),
    }
    for cause, (is_so, words, limit) in by_cause.items():
        if is_so:
            told = exit_text(_signed(done.code))
            facts: dict[str, JsonValue] = {"cause": cause, "limit": limit, "exit_code": done.code}
            return ScriptErrorKind.RESOURCE, f"The script {words} (limit {limit}) and {told}.", facts
    return None


def _end(done: Execution) -> _Failure | None:
    if done.code == 0:
        return None
    last = next((line for line in reversed(done.stderr.decode(errors="replace").splitlines()) if line.strip()), "")
    why = f": {_cut(last.strip(), _LINE)}" if last else "."
    return ScriptErrorKind.SCRIPT, f"The script {exit_text(_signed(done.code))}{why}", {"exit_code": done.code}


def _no_json(done: Execution, error: ValueError) -> _Failure:
    facts: dict[str, JsonValue] = {"exit_code": done.code}
    if not done.stdout.strip():
        message = "The script wrote nothing on stdout; it must write one JSON value."
    elif isinstance(error, TooMuchError):
        message = f"What the script wrote on stdout is not taken: {error}"
        facts |= error.excess.details
    else:
        message = f"What the script wrote on stdout is not one JSON value: {error}"
    return ScriptErrorKind.OUTPUT, message, facts


def _signed(code: int) -> int:
    """Python's form of the exit code: the sandbox's first process reports a signal as 128 plus its number."""
    return _BY_SIGNAL - code if code > _BY_SIGNAL else code


def _lines(text: str) -> tuple[str, ...]:
    lines = text.splitlines()
    note = (f"[… {len(lines) - _LINES} earlier lines left out]",) if len(lines) > _LINES else ()
    return (*note, *(_cut(line, _LINE) for line in lines[-_LINES:]))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [… {len(text) - most} more characters left out]"


def _tail(text: str) -> str:
    """The end of the text, where a traceback has its message."""
    return text if len(text) <= _TOLD_BYTES else f"[… {len(text) - _TOLD_BYTES} earlier characters left out]\n{text[-_TOLD_BYTES:]}"
