"""Everything that the documentation must name, read from its registry in the code."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import cast, get_args

import nexusrpc
from pydantic import BaseModel
from temporalio import activity, workflow

from activities.agent_tools import CODING_TOOLS
from api.app import create_app
from api.errors import STATUS
from api.ports import Dependencies, Limits
from api.problems import ProblemKind
from engine.making.gate import CHECKS
from engine.making.repositories.addresses import CloneFailure
from engine.registry.formats import FORMATS
from engine.registry.services import METHODS
from engine.runtimes import RUNTIMES
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.store.content import CONTENT_STORES
from tests.docs.pages import ROOT
from toolagent.client import names
from toolagent.client.nexus import ToolAgentService
from toolagent.contracts.batches import BatchedState
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.formats import ToolFormat
from toolagent.contracts.im import ImType
from toolagent.contracts.making import FindingKind, Stage, TaskNoteKind
from toolagent.contracts.records import EventType
from toolagent.contracts.references import ResultReference
from toolagent.contracts.routes import RunState
from toolagent.contracts.sandbox import SandboxLevel, SandboxLimits, SandboxPolicy
from toolagent.contracts.sources import ToolSource
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.im_faults import IM_FAULTS
from toolagent.testing.servers.runcomfy_ledger import FAULTS
from toolagent.testing.servers.scenario import Expectation, FaultKind, Turn
from toolagent_service import step_names, stubs
from toolagent_service.contracts.agent import AgentEnd
from toolagent_service.contracts.dependency_policy import DependencyPolicy, RefusalKind
from workers.temporal.host_workers import WORKFLOWS

__all__ = ["REGISTERED"]

Rows = Mapping[str, str]
"""By name, the required text of the second column; empty: any text."""


def routes() -> Rows:
    """The routes of the real application, without its dependencies."""
    doors = SimpleNamespace(limits=Limits(), api_key=None, allowed_hosts=())
    paths = create_app(cast("Dependencies", doors)).openapi()["paths"]
    return {f"{method.upper()} {path}": "" for path, methods in cast("dict[str, dict[str, object]]", paths).items() for method in methods}


def source_types() -> Rows:
    """Also types without a runtime."""
    union = get_args(ToolSource)[0]
    return {kind.model_fields["type"].default: "" for kind in cast("tuple[type[BaseModel], ...]", get_args(union))}


def script_errors() -> Rows:
    return {kind.value: f"`{ScriptFailure(kind, '').error_type.value}`" for kind in ScriptErrorKind}


def limits() -> Rows:
    """The limits as manifests and policies write them."""
    return {field.alias or name: "" for name, field in SandboxLimits.model_fields.items()}


def nexus_operations() -> Rows:
    definition = nexusrpc.get_service_definition(ToolAgentService)
    return dict.fromkeys(definition.operation_definitions if definition else (), "")


def checks() -> Rows:
    return {sys.modules[check.__module__].NAME: "" for check in CHECKS}


def workflows() -> Rows:
    """The workflows that a caller may start, by their names in Temporal."""
    found = [workflow._Definition.from_class(kind) for kind in WORKFLOWS]
    return {str(definition.name): "" for definition in found if definition}


def activities() -> Rows:
    found = [
        activity._Definition.from_callable(value)  # pyright: ignore[reportPrivateUsage] - nothing else says it
        for value in vars(stubs).values()
        if callable(value)
    ]
    return {str(definition.name): "" for definition in found if definition}


def task_queues() -> Rows:
    """Queues with fixed names; the others are named by buckets and hosts."""
    return {queue: "" for name, queue in (vars(names) | vars(step_names)).items() if name.endswith("_QUEUE")}


def worker_commands() -> Rows:
    """The commands by the program itself."""
    said = subprocess.run([sys.executable, "-m", "workers", "--help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {f"python -m workers {name}": "" for name in re.findall(r"^  ([a-z][a-z-]*) ", said, re.MULTILINE)}


def rooms() -> Rows:
    """The packages of the product; those of the engine one by one."""
    engine = [path.parent for path in (ROOT / "engine").glob("*/__init__.py")]
    tops = [ROOT / name for name in ("activities", "api", "workers", "workflows")]
    return {path.relative_to(ROOT).as_posix(): "" for path in (*engine, *tops, *(ROOT / "packages").iterdir()) if path.is_dir()}


def make_targets() -> Rows:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return {f"make {name}": "" for name in re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)}


def names_of(names: Iterable[str]) -> Callable[[], Rows]:
    rows = dict.fromkeys(names, "")
    return lambda: rows


def statuses_of(kinds: Iterable[ErrorType | ProblemKind]) -> Callable[[], Rows]:
    return lambda: {kind.value: str(HTTPStatus(STATUS[kind]).value) for kind in kinds}


def fields_of(model: type[BaseModel]) -> Callable[[], Rows]:
    return names_of(model.model_fields)


REGISTERED: Mapping[str, Callable[[], Rows]] = {
    "route": routes,
    "error type": statuses_of(ErrorType),
    "problem": statuses_of(ProblemKind),
    "field of ToolResult": fields_of(ToolResult),
    "field of ResultReference": fields_of(ResultReference),
    "task status": names_of(TaskState),
    "state of a batched call": names_of(BatchedState),
    "state of a tool": names_of(RunState),
    "event type": names_of(EventType),
    "stage": names_of(Stage),
    "kind of a line": names_of(TaskNoteKind),
    "finding": names_of(FindingKind),
    "failure of a clone": names_of(CloneFailure),
    "function of the coding agent": names_of(tool.name for tool in CODING_TOOLS),
    "end of an agent": names_of(AgentEnd),
    "check of the gate": checks,
    "field of DependencyPolicy": fields_of(DependencyPolicy),
    "refusal of a package": names_of(RefusalKind),
    "field of a scripted turn": fields_of(Turn),
    "fault of a scripted model": names_of(FaultKind),
    "expectation of a scripted turn": fields_of(Expectation),
    "source type": source_types,
    "runtime": names_of(RUNTIMES),
    "built-in tool": names_of(builtin_tools(BuiltinOptions())),
    "fault of RunComfy": names_of(FAULTS),
    "fault of the IM server": names_of(IM_FAULTS),
    "type of an IM message": names_of(ImType),
    "script error": script_errors,
    "service method": names_of(map(".".join, METHODS)),
    "sandbox level": names_of(SandboxLevel),
    "limit": limits,
    "field of SandboxPolicy": fields_of(SandboxPolicy),
    "catalog file": names_of(form.file_name for form in FORMATS),
    "tool format": names_of(ToolFormat),
    "nexus operation": nexus_operations,
    "content store": names_of(CONTENT_STORES),
    "workflow": workflows,
    "activity": activities,
    "task queue": task_queues,
    "search attribute": names_of(key.name for key in names.SEARCH_ATTRIBUTES),
    "worker command": worker_commands,
    "make target": make_targets,
    "room": rooms,
}
