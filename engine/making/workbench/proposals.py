"""Makes a candidate from a model's proposal: checks it, locks its dependencies and packs its files."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import ValidationError

from engine.disk.leftovers import discard
from engine.making.candidates import Candidates
from engine.making.dependencies.gate import not_after_of, refusals_of
from engine.making.failures import LockFailed
from engine.making.python_sources.projects import PYPROJECT, pyproject_of
from engine.making.python_sources.wanted import Wanted
from engine.making.repositories.packaging import pack_repository
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks, pinned
from engine.making.workbench.bench import Workbench
from engine.making.workbench.finishing import finished
from engine.making.workbench.places import Area, place_of
from engine.making.workbench.proposal import Judge, Proposal, Submitted
from engine.making.workbench.refusal import BenchRefused
from engine.registry.archives import NotPackedError
from engine.runtimes.environments.dependencies import Kind, Script, dependencies_of
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, LocalSource, ScriptLanguage
from toolagent.contracts.task_specs import MakeRuntime
from toolagent.validation.schemas import schema_faults

_MAIN = "main.py"
_DOCKERFILE = "Dockerfile"
_LOCK = "requirements.lock"
_OTHER_LISTS = frozenset({"uv.lock", "poetry.lock", "requirements.txt", _LOCK, f"{_MAIN}.lock"})
"""Lists of dependencies that the gate has not seen; only our lock counts."""

_FAULTS_TOLD = 5


class Proposals:
    """`is_anothers` tells whether a tool of this id exists that the task did not make."""

    def __init__(
        self, gate: Judge, locks: ProjectLocks, candidates: Candidates, is_anothers: Callable[[str, str], Awaitable[bool]]
    ) -> None:
        self._gate, self._locks, self._candidates, self._is_anothers = gate, locks, candidates, is_anothers

    async def submit(
        self, bench: Workbench, own: str, told: Proposal, *, is_there: bool = False, runtime: MakeRuntime | None = None
    ) -> Submitted:
        """`own` is the task's tool id; `is_there`: the task repairs the tool; `runtime` is the requested one.

        The same files give the same candidate. Raises BenchRefused, ScriptFailure, and errors of the content store.
        """
        await self._require_id(bench.task_id, own, told.tool_id, is_there=is_there)
        _require_runtime(told, runtime)
        manifest = await asyncio.to_thread(_manifest_of, told)
        source = _source_of(told)
        project = await asyncio.to_thread(_folder_of, bench, told)
        # Nothing may change while the files are read; background commands only tried the tool.
        await bench.commands.end()
        folder = bench.folder / "packed"
        candidate = Candidate(entries=(ToolEntry(manifest=manifest, sources=(source,)),), written_by_us=True)
        try:
            await (self._pack_docker(bench, project, told, folder) if told.is_docker else self._pack_local(bench, project, folder))
            file_id = await self._candidates.keep(bench.task_id, candidate, {manifest.tool_id: folder})
        except NotPackedError as error:
            raise BenchRefused(f"The files cannot be packed: {error}") from error
        finally:
            await finished(discard, folder)
        return Submitted(file_id, manifest.backend_runtime)

    async def _require_id(self, task_id: str, own: str, tool_id: str, *, is_there: bool) -> None:
        if tool_id != own:
            raise BenchRefused(f"This task is about the tool {own!r}, and {tool_id[:80]!r} would not be it: register it as {own!r}.")
        if not is_there and await self._is_anothers(task_id, tool_id):
            raise BenchRefused(
                f"There is a tool {tool_id!r} already, and it is not this task's to change. Nothing that is made here can be registered: "
                "say so, and stop."
            )

    async def _pack_local(self, bench: Workbench, project: str, into: Path) -> None:
        tree = await asyncio.to_thread(bench.tree_of, project)
        if not tree.has(_MAIN):
            raise BenchRefused(f"The project {project!r} has no {_MAIN}, which is what is started, as `python {_MAIN} --port N`.")
        await finished(_packed, tree.folder, into)
        await finished(_put_lock, into, await self._locked(bench, project, tree))
        await asyncio.to_thread(_require_lock, into)

    async def _pack_docker(self, bench: Workbench, project: str, told: Proposal, into: Path) -> None:
        tree = await asyncio.to_thread(bench.tree_of, project)
        if not tree.has(_DOCKERFILE):
            raise BenchRefused(
                f"{told.host_dir!r} has no {_DOCKERFILE}. A tool is built anew wherever it runs, so what was done by hand in a container "
                f"does not count: write the steps into a {_DOCKERFILE}, beside the files that it copies."
            )
        if not told.internal_port:
            raise BenchRefused("internal_port is 0. Name the port that the tool listens on in its container.")
        await finished(_packed, tree.folder, into)

    async def _locked(self, bench: Workbench, project: str, tree: Tree) -> str:
        """Locks the declared dependencies in the versions that were tried."""
        declared = await asyncio.to_thread(_declared, tree)
        installed = await asyncio.to_thread(bench.environments.installed, project)
        _require_installed(declared, {canonicalize_name(name) for name in installed})
        verdicts = await self._gate.judge(declared)
        if refusals := refusals_of(verdicts):
            raise BenchRefused("The project depends on what it may not have. " + " ".join(refusal.message for refusal in refusals))
        wanted = Wanted(
            tuple(verdict.requirement for verdict in verdicts), tuple(f"{name}=={version}" for name, version in installed.items())
        )
        try:
            lock = await self._locks.lock(wanted, (), bench.folder / "locking", not_after_of(verdicts))
        except LockFailed as error:
            if isinstance(error.__cause__, IndexesUnknown):
                raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, error.message) from error
            # The index may be away now.
            refusals_of(await self._gate.judge(declared))
            raise BenchRefused(f"{error.message}\n{error.told}".strip()) from error
        _require_tried(lock, {canonicalize_name(name) for name in installed})
        return lock


def _require_runtime(told: Proposal, asked: MakeRuntime | None) -> None:
    if asked is not None and told.is_docker is not (asked == "docker"):
        raise BenchRefused(f"This task asks for the runtime {asked!r}: make it like that, and register it with runtime_type {asked!r}.")


def _folder_of(bench: Workbench, told: Proposal) -> str:
    """The name of the folder to pack."""
    if told.host_dir is None:
        what = "the folder with the Dockerfile" if told.is_docker else "the folder that create_uv_project returned"
        raise BenchRefused(f"host_dir is missing: {what}. (A container by itself cannot be registered: it is on this host alone.)")
    if not told.is_docker:
        return bench.project_of(told.host_dir)
    if told.container_id is not None:
        bench.containers.require(told.container_id)
    place = place_of(told.host_dir)
    if place.area is not Area.WORK or len(place.parts) != 1:
        raise BenchRefused(f"{told.host_dir!r} is no folder directly below /work.")
    return place.parts[0]


def _source_of(told: Proposal) -> LocalSource | DockerSource:
    about = {
        "endpoint_path": told.endpoint_path,
        "http_method": told.http_method,
        "host_dir": f"tools/made/{told.tool_id.replace(':', '_')}",
    }
    try:
        if told.is_docker:
            return DockerSource.model_validate({**about, "dockerfile": _DOCKERFILE, "internal_port": told.internal_port})
        # It gets a port at each start; a fixed one could be taken.
        return LocalSource.model_validate(about)
    except ValidationError as error:
        raise BenchRefused(_faults_of(error)) from error


def _manifest_of(told: Proposal) -> ToolManifest:
    runtime = BackendRuntime.DOCKER if told.is_docker else BackendRuntime.LOCAL
    try:
        manifest = ToolManifest.model_validate({**told.manifest, "tool_id": told.tool_id, "backend_runtime": runtime})
    except ValidationError as error:
        raise BenchRefused(_faults_of(error)) from error
    schemas = {name: _schema(name, getattr(manifest, name)) for name in ("input_schema", "output_schema")}
    return manifest.model_copy(update=schemas)


def _schema(name: str, schema: JsonSchema) -> JsonSchema:
    if faults := schema_faults(schema):
        told = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:_FAULTS_TOLD])
        raise BenchRefused(f"{name} is no JSON Schema that can be used: {told}")
    try:
        written = written_out(schema)
    except SchemaNotFollowedError as error:
        raise BenchRefused(f"{name}, at {error.path}: {error}") from error
    if name == "input_schema" and written.get("type", "object") != "object":
        raise BenchRefused("input_schema describes no object, and tools take their parameters by name: its type is 'object'.")
    return written


def _faults_of(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:_FAULTS_TOLD])


def _declared(tree: Tree) -> tuple[str, ...]:
    if not tree.has(PYPROJECT):
        raise BenchRefused(
            f"The project has no {PYPROJECT}, which says what it depends on. Write it again, with the packages that it needs."
        )
    project = pyproject_of(tree, PurePosixPath()).table("project")
    if not project.values:
        raise BenchRefused(f"{PYPROJECT} cannot be read, or has no [project]. Mend it.")
    return project.texts("dependencies")


def _require_installed(declared: Sequence[str], installed: set[str]) -> None:
    for text in declared:
        try:
            asked = Requirement(text)
        except (InvalidRequirement, RecursionError) as error:
            raise BenchRefused(f"{PYPROJECT} depends on {text[:100]!r}, which is no requirement: {error}") from error
        if _is_missing(asked, installed):
            raise BenchRefused(
                f"{PYPROJECT} depends on {asked.name!r}, which is not installed. Add it with uv_add_dependency, and try it out."
            )


def _is_missing(asked: Requirement, installed: set[str]) -> bool:
    return canonicalize_name(asked.name) not in installed and (asked.marker is None or asked.marker.evaluate())


def _require_tried(lock: str, installed: set[str]) -> None:
    """Raises BenchRefused for packages that an extra brings, which the gate has not seen."""
    for asked in map(Requirement, pinned(lock)):
        if _is_missing(asked, installed):
            raise BenchRefused(
                f"{PYPROJECT} brings {asked.name!r} along, which is not installed, so nothing was tried with it. Is it of an extra "
                "written by hand? Add that with uv_add_dependency (such as 'httpx[http2]'), and try it out."
            )


def _packed(folder: Path, into: Path) -> None:
    try:
        pack_repository(folder, into)
    except ValueError as error:
        raise BenchRefused(f"The files cannot be packed: {error}") from error


def _require_lock(packed: Path) -> None:
    """Checks by the installer's own code that it will use the lock. Raises BenchRefused."""
    try:
        found = dependencies_of(Script(packed / _MAIN, _MAIN), ScriptLanguage.PYTHON)
    except ScriptFailure as failure:
        raise BenchRefused(failure.message) from failure
    if found.kind is not Kind.REQUIREMENTS_LOCK:
        raise BenchRefused(
            f"{_MAIN} says in a comment ('# /// script') what it depends on. That is for {PYPROJECT}: take it out of the file."
        )


def _put_lock(packed: Path, lock: str) -> None:
    for name in _OTHER_LISTS:
        (packed / name).unlink(missing_ok=True)
    (packed / _LOCK).write_text(lock, encoding="utf-8")
    (packed / _LOCK).chmod(0o644)
