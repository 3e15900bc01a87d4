"""Workflows in the format of ComfyUI's API."""

import pytest
from pydantic import JsonValue

from engine.runtimes.builtin.runcomfy.workflow import NotAWorkflow, api_format, completed, renamed

SAVED: dict[str, JsonValue] = {
    "1": {"class_type": "LoadImage", "inputs": {"image": "input.png"}},
    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}},
}


@pytest.mark.parametrize("link", [["1", 0], [1, 0]])
def test_a_list_of_nodes_becomes_the_format_of_the_api(link: list[JsonValue]) -> None:
    nodes: list[JsonValue] = [
        {"id": 1, "type": "LoadImage", "inputs": {"image": "input.png"}},
        {"id": "2", "type": "SaveImage", "inputs": {"images": link}},
    ]
    assert api_format({"nodes": nodes}) == SAVED


def test_the_format_of_the_api_stays() -> None:
    titled: dict[str, JsonValue] = {**SAVED, "1": {"class_type": "LoadImage", "inputs": {"image": "a.png"}, "_meta": {"title": "In"}}}
    assert api_format(titled) == titled


def test_two_numbers_are_a_link_only_where_there_is_such_a_node() -> None:
    node: JsonValue = {"class_type": "Resize", "inputs": {"size": [512, 512], "image": [7, 1]}}
    source: JsonValue = {"class_type": "LoadImage", "inputs": {}}
    assert api_format({"7": source, "8": node})["8"] == {"class_type": "Resize", "inputs": {"size": [512, 512], "image": ["7", 1]}}


@pytest.mark.parametrize(
    ("workflow", "path"),
    [
        ({}, "$"),
        ({"nodes": []}, "$"),
        ({"nodes": ["x"]}, "$.nodes[0]"),
        ({"nodes": [{"type": "LoadImage"}]}, "$.nodes[0].id"),
        ({"nodes": [{"id": True, "type": "LoadImage"}]}, "$.nodes[0].id"),
        ({"nodes": [{"id": 1}]}, "$.nodes[0].type"),
        ({"nodes": [{"id": 1, "type": "A"}, {"id": "1", "type": "B"}]}, "$.nodes[1].id"),
        ({"nodes": [{"id": 1, "type": "LoadImage", "inputs": [{"link": 3}], "widgets_values": ["input.png"]}]}, "$.nodes[0].inputs"),
        ({"nodes": [{"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0]}}]}, "$.2.inputs.images"),
        ({"1": {"class_type": "SaveImage", "inputs": {"images": ["9", 0]}}}, "$.1.inputs.images"),
        ({"1": {"inputs": {}}}, "$.1"),
        ({"1": 5}, "$.1"),
        ({"1": {"class_type": "A", "inputs": {"a": ["2", 0]}}, "2": {"class_type": "A", "inputs": {"a": ["1", 0]}}}, "$.1"),
        ({"1": {"class_type": "A", "inputs": 3}}, "$.1.inputs"),
    ],
)
def test_what_is_no_workflow_is_refused_with_its_place(workflow: dict[str, JsonValue], path: str) -> None:
    with pytest.raises(NotAWorkflow) as refusal:
        api_format(workflow)
    assert refusal.value.path == path


def test_files_are_renamed_where_a_node_names_them_as_a_whole() -> None:
    prompt: dict[str, JsonValue] = {
        **SAVED,
        "3": {"class_type": "Note", "inputs": {"text": "see input.png"}},
        "4": {"class_type": "LoadImage", "inputs": {"image": "input.png [input]"}},
    }
    assert renamed(prompt, {"input.png": "call-1/input.png"}) == {
        "1": {"class_type": "LoadImage", "inputs": {"image": "call-1/input.png"}},
        "2": SAVED["2"],
        "3": prompt["3"],
        "4": {"class_type": "LoadImage", "inputs": {"image": "call-1/input.png [input]"}},
    }


def test_a_node_gets_the_defaults_of_what_it_leaves_out() -> None:
    own: dict[str, JsonValue] = {"1": {"class_type": "Save", "inputs": {"prefix": "own"}}, "2": {"class_type": "Save"}, "3": SAVED["1"]}
    assert completed(own, {"Save": {"prefix": "usual", "quality": 80}, "LoadImage": {}}) == {
        "1": {"class_type": "Save", "inputs": {"prefix": "own", "quality": 80}},
        "2": {"class_type": "Save", "inputs": {"prefix": "usual", "quality": 80}},
        "3": SAVED["1"],
    }
