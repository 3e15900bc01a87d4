"""Reads a ComfyUI prompt: the checks of `POST /prompt` with ComfyUI's messages, and the order of the nodes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

__all__ = ["Graph", "InvalidPrompt", "NodeKind", "checked"]

_FAILED = ("prompt_outputs_failed_validation", "Prompt outputs failed validation")

Node = Mapping[str, Any]
Prompt = Mapping[str, Node]


@dataclass(frozen=True)
class NodeKind:
    """The inputs and outputs of a kind of node: `links` to nodes with their types, `files` with their folders, `values` with defaults.

    All inputs are required. ComfyUI's editor sends the defaults; the API refuses a prompt without them.
    """

    gives: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    values: Mapping[str, str | float] = field(default_factory=dict[str, str | float])
    is_output: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        return (*self.links, *self.files, *self.values)

    def shown(self) -> dict[str, JsonValue]:
        """The answer of `/object_info`."""
        required: dict[str, JsonValue] = {
            **{name: [kind] for name, kind in self.links.items()},
            **{name: [[]] for name in self.files},
            **{name: ["STRING" if isinstance(one, str) else "FLOAT", {"default": one}] for name, one in self.values.items()},
        }
        return {"input": {"required": required}, "output": list(self.gives), "output_node": self.is_output}


KINDS: Mapping[str, NodeKind] = {
    "LoadImage": NodeKind(("IMAGE", "MASK"), files={"image": "input"}),
    "SaveImage": NodeKind(links={"images": "IMAGE"}, values={"filename_prefix": "ComfyUI"}, is_output=True),
    "PreviewImage": NodeKind(links={"images": "IMAGE"}, is_output=True),
    "CheckpointLoaderSimple": NodeKind(("MODEL", "CLIP", "VAE"), files={"ckpt_name": "checkpoints"}),
    "LoraLoader": NodeKind(
        ("MODEL", "CLIP"),
        {"model": "MODEL", "clip": "CLIP"},
        files={"lora_name": "loras"},
        values={"strength_model": 1.0, "strength_clip": 1.0},
    ),
}


class InvalidPrompt(Exception):
    """`answer` is the body of the 400."""

    def __init__(self, kind: str, message: str, details: str = "", nodes: dict[str, JsonValue] | None = None) -> None:
        super().__init__(message)
        self.answer: dict[str, JsonValue] = {"error": _problem(kind, message, details), "node_errors": nodes or {}}


@dataclass(frozen=True)
class Graph:
    prompt: Prompt
    order: tuple[str, ...]
    """The nodes that the valid outputs need."""
    errors: dict[str, JsonValue]
    """By node. Outputs that need a node with errors are left out, as in ComfyUI, while another output is valid."""

    def inputs(self, node: str) -> Mapping[str, Any]:
        return self.prompt[node].get("inputs", {})

    def kind(self, node: str) -> str:
        return str(self.prompt[node]["class_type"])


def checked(prompt: JsonValue, files: Mapping[str, Collection[str]]) -> Graph:
    """`files` are the names in each folder. Raises InvalidPrompt."""
    if not isinstance(prompt, dict):
        raise InvalidPrompt("no_prompt", "No prompt provided", "No prompt provided")
    return _graph({node_id: _of_known_class(node_id, node) for node_id, node in prompt.items()}, files)


def _graph(prompt: Prompt, files: Mapping[str, Collection[str]]) -> Graph:
    outputs = [node_id for node_id, node in prompt.items() if KINDS[_class(node)].is_output]
    if not outputs:
        raise InvalidPrompt("prompt_no_outputs", "Prompt has no outputs")
    needs = {output: _ordered(prompt, [output]) for output in outputs}
    told: dict[str, JsonValue] = {}
    for node_id, node in prompt.items():
        dependent: list[JsonValue] = [output for output in outputs if node_id in needs[output]]
        if dependent and (found := _problems(prompt, node, files)):
            told[node_id] = {"errors": found, "dependent_outputs": dependent, "class_type": _class(node)}
    valid = [output for output in outputs if told.keys().isdisjoint(needs[output])]
    if not valid:
        raise InvalidPrompt(*_FAILED, nodes=told)
    return Graph(prompt, _ordered(prompt, valid), told)


def _class(node: Node) -> str:
    return str(node.get("class_type") or "")


def _of_known_class(node_id: str, node: JsonValue) -> Node:
    if isinstance(node, dict) and _class(node) in KINDS:
        return node
    name = _class(node) if isinstance(node, dict) else ""
    reason = f"node {name} does not exist" if name else "a node is missing the class_type property"
    raise InvalidPrompt("invalid_prompt", f"Cannot execute because {reason}.", f"Node ID '#{node_id}'")


def _problems(prompt: Prompt, node: Node, files: Mapping[str, Collection[str]]) -> list[JsonValue]:
    kind = KINDS[_class(node)]
    inputs: dict[str, JsonValue] = node.get("inputs", {})
    found = [_problem("required_input_missing", "Required input is missing", name) for name in kind.required if name not in inputs]
    for name, value in inputs.items():
        if isinstance(value, list):
            found += _link_problems(prompt, name, value, kind.links.get(name))
        elif name in kind.links:
            found.append(_bad_link(name))
        elif name in kind.files and value not in files.get(kind.files[name], ()):
            found.append(_absent(kind.files[name], name, value))
    return found


def _link_problems(prompt: Prompt, name: str, link: JsonValue, wanted: str | None) -> list[JsonValue]:
    match link:
        case [str() as node_id, int()] if node_id not in prompt:
            return [_problem("exception_during_validation", "Exception when validating node", f"{name}: there is no node '{node_id}'")]
        case [str() as node_id, int() as slot]:
            gives = KINDS[_class(prompt[node_id])].gives
            given = gives[slot] if 0 <= slot < len(gives) else "nothing"
            if wanted is None or given == wanted:
                return []
            return [
                _problem("return_type_mismatch", "Return type mismatch between linked nodes", f"{name}, received_type({given}) mismatch")
            ]
        case _:
            return [_bad_link(name)]


def _bad_link(name: str) -> JsonValue:
    return _problem("bad_linked_input", "Bad linked input, must be a length-2 list of [node_id, slot_index]", name)


def _absent(folder: str, name: str, value: object) -> JsonValue:
    if folder == "input":
        return _problem("custom_validation_failed", "Custom validation failed for node", f"{name} - Invalid image file: {value}")
    return _problem("value_not_in_list", "Value not in list", f"{name}: '{value}' not in list")


def _problem(kind: str, message: str, details: str) -> JsonValue:
    return {"type": kind, "message": message, "details": details, "extra_info": {}}


def _ordered(prompt: Prompt, outputs: list[str]) -> tuple[str, ...]:
    """Each node comes after its sources. Raises InvalidPrompt for a circle, with ComfyUI's general error."""
    order: dict[str, None] = {}

    def visit(node_id: str, on_the_way: frozenset[str]) -> None:
        if node_id in on_the_way:
            raise InvalidPrompt(*_FAILED)
        inputs: dict[str, JsonValue] = prompt[node_id].get("inputs", {})
        for source in [str(value[0]) for value in inputs.values() if isinstance(value, list)]:
            if source in prompt and source not in order:
                visit(source, on_the_way | {node_id})
        order[node_id] = None

    for output in outputs:
        visit(output, frozenset())
    return tuple(order)
