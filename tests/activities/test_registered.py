"""Each activity, workflow and role of agents has its line of a worker; without it a workflow would wait for ever."""

import ast
from importlib import import_module
from inspect import getmembers, isclass, isfunction
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from types import ModuleType

from temporalio import activity, workflow

import activities
import workflows
from activities import agents
from activities.agents.role import AgentRole
from toolagent_service import stubs
from workers.temporal.host_workers import WORKFLOWS

WORKERS = Path(__file__).parents[2] / "workers"


def names_in(of: object) -> dict[str, str]:
    """The Temporal names of the activities of a module or class, by their Python names."""
    found = {name: activity._Definition.from_callable(value) for name, value in getmembers(of, isfunction)}  # pyright: ignore[reportPrivateUsage] - nothing else says it
    return {name: str(definition.name) for name, definition in found.items() if definition}


def implemented() -> dict[str, tuple[ModuleType, str]]:
    modules = [import_module(f"activities.{module.name}") for module in iter_modules(activities.__path__)]
    classes = [(module, kind) for module in modules for _, kind in getmembers(module, isclass) if kind.__module__ == module.__name__]
    return {name: (module, method) for module, kind in classes for method, name in names_in(kind).items()}


def test_each_stub_has_an_activity_and_each_activity_a_stub() -> None:
    stubbed, there = set(names_in(stubs).values()), set(implemented())
    assert sorted(there - stubbed) == [], "Each needs a stub in packages/service/src/toolagent_service/stubs.py."
    assert sorted(stubbed - there) == [], "No class in a file of activities implements these stubs."


def test_a_worker_names_each_activity() -> None:
    # Or its module, in `steps`, which a worker names.
    trees = {module.__name__: ast.parse(Path(str(module.__file__)).read_text()) for module, _ in implemented().values()}
    steps = {
        name: {
            node.attr
            for found in ast.walk(tree)
            if isinstance(found, ast.FunctionDef) and found.name == "steps"
            for node in ast.walk(found)
            if isinstance(node, ast.Attribute)
        }
        for name, tree in trees.items()
    }
    named = {
        node.attr for file in WORKERS.rglob("*.py") for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)
    }
    unnamed = [name for name, (module, method) in implemented().items() if method not in named | steps[module.__name__]]
    assert unnamed == [], (
        "Each needs its place in a tuple of `activities_of` (workers/parts.py) or `running_making` (workers/host/making.py)."
    )


def test_a_worker_names_each_workflow() -> None:
    modules = [import_module(module.name) for module in walk_packages(workflows.__path__, "workflows.")]
    classes = {kind for module in modules for _, kind in getmembers(module, isclass) if kind.__module__ == module.__name__}
    unnamed = [kind.__name__ for kind in classes - {*WORKFLOWS} if workflow._Definition.from_class(kind)]  # pyright: ignore[reportPrivateUsage] - nothing else says it
    assert unnamed == [], "Each needs a line in `HOST_WORKFLOWS` of workers/temporal/host_workers.py."


def test_a_worker_has_each_role_of_agents() -> None:
    modules = [import_module(f"activities.agents.{module.name}") for module in iter_modules(agents.__path__)]
    classes = {kind for module in modules for _, kind in getmembers(module, isclass) if kind.__module__ == module.__name__}
    there = sorted(kind.__name__ for kind in classes if issubclass(kind, AgentRole) and kind is not AgentRole)
    tree = ast.parse((WORKERS / "host/making.py").read_text())
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "roles"]
    (roles,) = [node.value.elts for node in assigned if isinstance(node.value, ast.Tuple)]
    assert len(roles) == len(there), f"`roles` of workers/host/making.py has one of each of {', '.join(there)}."


def test_a_workflow_names_the_queue_of_each_activity() -> None:
    trees = {file: ast.parse(file.read_text()) for file in (WORKERS.parent / "workflows").rglob("*.py")}
    calls = [(file.name, node) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [
        (name, call)
        for name, call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in {"execute_activity", "start_activity"}
    ]
    assert made
    # The options of a file `options`, whose type demands a queue, or a queue itself.
    bare = [f"{name}:{call.lineno}" for name, call in made if not {None, "task_queue"} & {given.arg for given in call.keywords}]
    assert bare == [], "No worker takes an activity from the queue of the workflow: give the options of workflows/options.py."
