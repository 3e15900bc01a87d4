"""Collects what is known of a tool's failures, and copies its files for the repair."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from engine.making.mending.replay import as_recorded
from engine.making.workbench.bench import Workbench, Workbenches
from engine.making.workbench.refusal import BenchRefused
from engine.registry.registry import ToolRegistry
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.runtimes.given_secrets import without_given
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import Progress
from engine.store.calls import CallTable
from engine.store.quarantine import QuarantineTable
from engine.store.routes import RouteTable
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.records import CallRecord
from toolagent.contracts.task_specs import Example, RepairTool
from toolagent.core.calls.masking import masked_params, masked_text
from toolagent.core.texts import shortened
from toolagent_service.calls.shared_processes import place_of
from toolagent_service.contracts.making_steps import Diagnosis, FailedCall
from toolagent_service.making.mendable import content_of, unmendable
from toolagent_service.making.withheld import divided

_ITS_OWN = (
    ErrorType.EXECUTION_ERROR,
    ErrorType.TIMEOUT,
    ErrorType.OUTPUT_VALIDATION_ERROR,
    ErrorType.DEPENDENCY_ERROR,
    ErrorType.UNAVAILABLE,
)
"""Errors that a tool may cause. Validation errors of calls that reached it come last."""

_MOST_CALLS = 5
_LOOKED_AT = 25
_MOST_LOG = 6_000
_MOST_ERROR = 1_500
_MOST_PARAMS = 1_500
_MOST_MANIFEST = 8_000
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class DiagnosisParts:
    """`state` is this host's state directory, which has the tools' logs. `projects` has the files of versions."""

    registry: ToolRegistry
    routes: RouteTable
    calls: CallTable
    quarantine: QuarantineTable
    benches: Workbenches
    projects: Projects | None
    state: Path


class Diagnoses:
    """Idempotent: an existing copy stays, with all changes."""

    def __init__(self, parts: DiagnosisParts) -> None:
        self._parts = parts

    async def of(self, task_id: str, spec: RepairTool, progress: Progress) -> Diagnosis:
        """Raises StartFailed and ScriptFailure if a service of ours does not work now."""
        entry = await self._parts.registry.entry(spec.tool_id)
        if entry is None:
            return Diagnosis(refused=f"There is no tool {spec.tool_id!r}, so there is nothing to mend. GET /tools has those there are.")
        if refused := unmendable(entry):
            return Diagnosis(refused=refused)
        progress(f"looking at what became of {spec.tool_id}")
        route = await self._parts.routes.get(spec.tool_id)
        logs = self._parts.state / "tools" / place_of(spec.tool_id, entry.sources[0])
        _, withheld = divided(task_id, spec.examples)
        found = Diagnosis(
            version=entry.manifest.version,
            content=content_of(entry),
            manifest=_about(entry),
            last_error=_end_of(masked_text(route.last_error or ""), _MOST_ERROR) if route else "",
            log=await asyncio.to_thread(log_of, logs),
            failed_calls=await self._failed(entry, withheld),
        )
        return await self._laid_out(task_id, entry, found, progress)

    async def _failed(self, entry: ToolEntry, withheld: Sequence[Example]) -> tuple[FailedCall, ...]:
        tool_id, calls = entry.manifest.tool_id, self._parts.calls
        poison = await self._poison(entry)
        doubted = await calls.latest_failed(tool_id, (ErrorType.VALIDATION_ERROR,), _LOOKED_AT)
        failed = await calls.latest_failed(tool_id, _ITS_OWN, _LOOKED_AT)
        known = {one.call_id for one in poison}
        records = (*poison, *(record for record in failed if record.call_id not in known), *doubted)
        schema = entry.manifest.input_schema
        hidden = [as_recorded(schema, example.input) for example in withheld]
        shown = (record for record in records if as_recorded(schema, record.params) not in hidden)
        return tuple(_told(schema, record) for record in islice(shown, _MOST_CALLS))

    async def _poison(self, entry: ToolEntry) -> list[CallRecord]:
        """The last known call of each quarantined input."""
        inputs = await self._parts.quarantine.of_tool(entry.manifest.tool_id, entry.manifest.version)
        known = [await self._parts.calls.get(one.call_ids[-1]) for one in inputs[:_MOST_CALLS] if one.call_ids]
        return [record for record in known if record is not None]

    async def _laid_out(self, task_id: str, entry: ToolEntry, found: Diagnosis, progress: Progress) -> Diagnosis:
        try:
            folder = await self._files_of(entry, progress)
        except StartFailed as failure:
            if failure.error_type is ErrorType.UNAVAILABLE:
                raise
            return Diagnosis(refused=failure.message)
        progress("laying its files out")
        bench = await self._parts.benches.of(task_id)
        name = entry.manifest.tool_id.rpartition(":")[2][:_LONGEST_NAME]
        place, notes = await _brought(bench, name, folder, is_project=entry.sources[0].project is not None)
        return found.model_copy(update={"folder": place, "notes": notes})

    async def _files_of(self, entry: ToolEntry, progress: Progress) -> Path:
        source, tool_id = entry.sources[0], entry.manifest.tool_id
        if self._parts.projects is None or source.archive is None:
            raise StartFailed(ErrorType.DEPENDENCY_ERROR, f"The files of {tool_id!r} cannot be had on this host.")
        return await self._parts.projects.folder_of(source.archive, tool_id, progress)


def log_of(folder: Path) -> str:
    """The end of a tool's output, the newest last; empty if there is none on this host. Blocks.

    It has the account of the last run that ended, and the streams of the current run.
    """
    stamps = {name: stamp for name in ("last_run.log", "stdout.log", "stderr.log") if (stamp := _stamp(folder / name))}
    ended = stamps.get("last_run.log", 0)
    # The account of a run that has ended holds both streams.
    shown = [name for name, stamp in stamps.items() if name == "last_run.log" or stamp > ended]
    share = _MOST_LOG // (len(shown) or 1)
    texts = {name: _end_of(masked_text(without_given(_tail(folder / name, 4 * share))), share).strip() for name in shown}
    return "\n\n".join(f"{name}:\n{text}" for name, text in texts.items() if text)


async def _brought(bench: Workbench, name: str, folder: Path, *, is_project: bool) -> tuple[str, tuple[str, ...]]:
    """The place of the copy, and a note if its packages cannot be installed, which may be the fault to repair."""
    if not is_project:
        return await bench.bring(name, folder), ()
    try:
        return await bench.bring_project(name, folder), ()
    except BenchRefused as refused:
        note = str(refused)
    except ScriptFailure as failure:
        if failure.kind is ScriptErrorKind.UNAVAILABLE:
            raise
        note = failure.message
    return await bench.create_project(name), (f"Not all packages of its lock could be installed: {_end_of(note, _MOST_ERROR)}",)


def _about(entry: ToolEntry) -> str:
    source = entry.sources[0]
    how = source.model_dump(mode="json", include={"type", "endpoint_path", "http_method", "internal_port", "health_path"})
    about = entry.manifest.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"version", "status"})
    text = json.dumps({**about, "source": how}, ensure_ascii=False, indent=1)
    return text if len(text) <= _MOST_MANIFEST else f"{text[:_MOST_MANIFEST]}\n… (cut: {len(text):,} characters)"


def _told(schema: JsonSchema, record: CallRecord) -> FailedCall:
    error = record.result.error if record.result else None
    details = json.dumps(masked_params({}, {"": error.details})[""], ensure_ascii=False) if error and error.details else ""
    params = json.dumps(masked_params(schema, record.params), ensure_ascii=False)
    return FailedCall(
        call_id=record.call_id,
        at=record.created_at,
        version=record.version,
        params=shortened(params, _MOST_PARAMS),
        error_type=error.type.value if error else "",
        message=_end_of(masked_text(error.message), _MOST_ERROR) if error else "",
        details=_end_of(masked_text(details), _MOST_ERROR),
    )


def _end_of(text: str, most: int) -> str:
    """The end of a long text, because the error is there."""
    return text if len(text) <= most else f"… {text[-most:]}"


def _stamp(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _tail(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""
