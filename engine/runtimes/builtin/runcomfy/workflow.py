"""A workflow of ComfyUI in the format of its API: `{"1": {"class_type": …, "inputs": {…}}}`."""

from collections.abc import Mapping
from typing import TypeAlias

from pydantic import JsonValue

Prompt: TypeAlias = dict[str, JsonValue]


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
    return {node_id: _with_links(entry, converted) for node_id, entry in converted.items()}


def renamed(prompt: Prompt, names: Mapping[str, str]) -> Prompt:
    """With each input that is one of these names replaced."""
    return {node_id: _renamed(node, names) for node_id, node in prompt.items()}


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


def _renamed(node: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if not isinstance(node, dict) or not isinstance(inputs := node.get("inputs"), dict):
        return node
    return {**node, "inputs": {name: names.get(value, value) if isinstance(value, str) else value for name, value in inputs.items()}}
