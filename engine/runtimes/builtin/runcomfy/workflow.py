"""ComfyUI workflows in API format: `{"1": {"class_type": …, "inputs": {…}}}`."""

from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from pydantic import JsonValue

Prompt: TypeAlias = dict[str, JsonValue]

_FROM_INPUTS = " [input]"


class NotAWorkflow(ValueError):
    """`path` is the place of the fault."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def api_format(workflow: Mapping[str, JsonValue]) -> Prompt:
    """Converts to API format, from that or from `{"nodes": [{"id", "type", "inputs"}]}`. Raises NotAWorkflow."""
    nodes = workflow.get("nodes")
    if isinstance(nodes, list):
        converted: Prompt = {}
        for at, node in enumerate(nodes):
            node_id, entry = _node(node, f"$.nodes[{at}]")
            if node_id in converted:
                raise NotAWorkflow(f"$.nodes[{at}].id", f"another node has the id {node_id!r}")
            converted[node_id] = entry
    else:
        converted = dict(workflow)
    if not converted:
        raise NotAWorkflow("$", "it has no nodes")
    for node_id, entry in converted.items():
        _check(node_id, entry, converted)
    _check_order(converted)
    return {node_id: _with_links(entry, converted) for node_id, entry in converted.items()}


def is_short(workflow: Mapping[str, JsonValue]) -> bool:
    """Whether the workflow is a list of nodes, which may leave out inputs with defaults."""
    return isinstance(workflow.get("nodes"), list)


def completed(prompt: Prompt, defaults: Mapping[str, Prompt]) -> Prompt:
    """Adds the inputs that nodes leave out; `defaults` are by class. ComfyUI fills in none: its editor always sends all."""

    def filled(node: JsonValue) -> JsonValue:
        own = defaults.get(_class(node), {})
        return _with_inputs(node, lambda inputs: {**own, **inputs})

    return {node_id: filled(node) for node_id, node in prompt.items()}


def classes(prompt: Prompt) -> frozenset[str]:
    return frozenset(map(_class, prompt.values()))


def renamed(prompt: Prompt, names: Mapping[str, str]) -> Prompt:
    """Replaces each input that is one of these names, also as `input.png [input]`, which ComfyUI's mask editor writes."""
    every = {**names, **{f"{name}{_FROM_INPUTS}": f"{new}{_FROM_INPUTS}" for name, new in names.items()}}

    def replaced(inputs: Prompt) -> Prompt:
        return {name: every.get(value, value) if isinstance(value, str) else value for name, value in inputs.items()}

    return {node_id: _with_inputs(node, replaced) for node_id, node in prompt.items()}


def _node(node: JsonValue, path: str) -> tuple[str, Prompt]:
    if not isinstance(node, dict):
        raise NotAWorkflow(path, "a node is an object")
    node_id, kind, inputs = node.get("id"), node.get("type"), node.get("inputs", {})
    if isinstance(node_id, bool) or not isinstance(node_id, (str, int)):
        raise NotAWorkflow(f"{path}.id", "a node has an id, a number or a text")
    if not isinstance(kind, str) or not kind:
        raise NotAWorkflow(f"{path}.type", "a node has a type, such as LoadImage")
    if not isinstance(inputs, dict):
        # ComfyUI's editor saves lists: only the node's code tells which value is which input.
        raise NotAWorkflow(
            f"{path}.inputs",
            "inputs are an object of values by name. Export a workflow of ComfyUI's editor in API format",
        )
    return str(node_id), {"class_type": kind, "inputs": inputs}


def _check(node_id: str, node: JsonValue, nodes: Prompt) -> None:
    path = f"$.{node_id}"
    if not isinstance(node, dict) or not isinstance(node.get("class_type"), str):
        raise NotAWorkflow(path, "a node is an object with `class_type` and `inputs`")
    inputs = node.get("inputs", {})
    if not isinstance(inputs, dict):
        raise NotAWorkflow(f"{path}.inputs", "inputs are an object of values by name")
    for name, value in inputs.items():
        link = _link(value, nodes)
        if link is not None and link[0] not in nodes:
            raise NotAWorkflow(f"{path}.inputs.{name}", f"it is linked to node {link[0]!r}, which is not there")


def _check_order(nodes: Prompt) -> None:
    """Refuses circles. ComfyUI does too, but does not name the cause."""
    try:
        TopologicalSorter({node_id: _sources(node, nodes) for node_id, node in nodes.items()}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        raise NotAWorkflow(f"$.{circle[0]}", f"nodes are linked in a circle: {' → '.join(reversed(circle))}") from error


def _sources(node: JsonValue, nodes: Prompt) -> list[str]:
    inputs = node.get("inputs") if isinstance(node, dict) else None
    return [link[0] for value in inputs.values() if (link := _link(value, nodes))] if isinstance(inputs, dict) else []


def _link(value: JsonValue, nodes: Prompt) -> tuple[str, int] | None:
    """The node and its output if the value is a link: `["1", 0]`, or `[1, 0]` if there is such a node."""
    match value:
        case [str() as node, int() as output] if not isinstance(output, bool):
            return node, output
        case [int() as node, int() as output] if str(node) in nodes and not isinstance(output, bool):
            return str(node), output
        case _:
            return None


def _with_links(node: JsonValue, nodes: Prompt) -> JsonValue:
    """Writes node ids in links as texts, because ComfyUI compares them as texts."""
    return _with_inputs(
        node, lambda inputs: {name: list[JsonValue](link) if (link := _link(value, nodes)) else value for name, value in inputs.items()}
    )


def _with_inputs(node: JsonValue, change: Callable[[Prompt], Prompt]) -> JsonValue:
    if not isinstance(node, dict) or not isinstance(inputs := node.get("inputs", {}), dict):
        return node
    return {**node, "inputs": change(inputs)}


def _class(node: JsonValue) -> str:
    return str(node["class_type"]) if isinstance(node, dict) else ""
