"""A workflow of ComfyUI in the format of its API: `{"1": {"class_type": …, "inputs": {…}}}`."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from pydantic import JsonValue

Prompt: TypeAlias = dict[str, JsonValue]

_FROM_INPUTS = " [input]"


class NotAWorkflow(ValueError):
    """`path` is where in the workflow."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def api_format(workflow: Mapping[str, JsonValue]) -> Prompt:
    """The same in the format of the API, from that or from `{"nodes": [{"id", "type", "inputs"}]}`. Raises NotAWorkflow."""
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
    """Whether it is a list of nodes, in which inputs may be left out that have a default."""
    return isinstance(workflow.get("nodes"), list)


def completed(prompt: Prompt, defaults: Mapping[str, Prompt]) -> Prompt:
    """With the inputs that a node leaves out; `defaults` are by class. ComfyUI has its editor send them, and fills in none."""
    return {node_id: _completed(node, defaults) for node_id, node in prompt.items()}


def classes(prompt: Prompt) -> frozenset[str]:
    return frozenset(str(node["class_type"]) for node in prompt.values() if isinstance(node, dict))


def renamed(prompt: Prompt, names: Mapping[str, str]) -> Prompt:
    """With each input that is one of these names replaced, also as `input.png [input]`, as ComfyUI's editor of masks writes it."""
    every = {**names, **{f"{name}{_FROM_INPUTS}": f"{new}{_FROM_INPUTS}" for name, new in names.items()}}
    return {node_id: _renamed(node, every) for node_id, node in prompt.items()}


def _node(node: JsonValue, path: str) -> tuple[str, Prompt]:
    if not isinstance(node, dict):
        raise NotAWorkflow(path, "a node is an object")
    node_id, kind, inputs = node.get("id"), node.get("type"), node.get("inputs", {})
    if isinstance(node_id, bool) or not isinstance(node_id, (str, int)):
        raise NotAWorkflow(f"{path}.id", "a node has an id, a number or a text")
    if not isinstance(kind, str) or not kind:
        raise NotAWorkflow(f"{path}.type", "a node has a type, such as LoadImage")
    if not isinstance(inputs, dict):
        # What the editor of ComfyUI saves: its values cannot be told apart without the node's code.
        raise NotAWorkflow(
            f"{path}.inputs",
            "inputs are an object of values by name. A workflow that ComfyUI's editor saved is to be exported as API format",
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
    """ComfyUI refuses a circle as well, but does not say that it is one."""
    try:
        TopologicalSorter({node_id: _sources(node, nodes) for node_id, node in nodes.items()}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        raise NotAWorkflow(f"$.{circle[0]}", f"nodes are linked in a circle: {' → '.join(reversed(circle))}") from error


def _sources(node: JsonValue, nodes: Prompt) -> list[str]:
    inputs = node.get("inputs") if isinstance(node, dict) else None
    return [link[0] for value in inputs.values() if (link := _link(value, nodes))] if isinstance(inputs, dict) else []


def _link(value: JsonValue, nodes: Prompt) -> tuple[str, int] | None:
    """The node and its output, if it is a link: `["1", 0]`, or `[1, 0]` where there is such a node."""
    match value:
        case [str() as node, int() as output] if not isinstance(output, bool):
            return node, output
        case [int() as node, int() as output] if str(node) in nodes and not isinstance(output, bool):
            return str(node), output
        case _:
            return None


def _with_links(node: JsonValue, nodes: Prompt) -> JsonValue:
    """With the ids of nodes in links as texts, as ComfyUI compares them."""
    if not isinstance(node, dict) or not isinstance(inputs := node.get("inputs", {}), dict):
        return node
    return {**node, "inputs": {name: list[JsonValue](link) if (link := _link(value, nodes)) else value for name, value in inputs.items()}}


def _completed(node: JsonValue, defaults: Mapping[str, Prompt]) -> JsonValue:
    if not isinstance(node, dict) or not isinstance(inputs := node.get("inputs", {}), dict):
        return node
    return {**node, "inputs": {**defaults.get(str(node["class_type"]), {}), **inputs}}


def _renamed(node: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if not isinstance(node, dict) or not isinstance(inputs := node.get("inputs"), dict):
        return node
    return {**node, "inputs": {name: names.get(value, value) if isinstance(value, str) else value for name, value in inputs.items()}}
