"""The descriptions of the tools for a model, and the errors for arguments that do not fit."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from activities.use_tool import shown
from tests.activities.roles import OFFERED
from toolagent.validation.schemas import schema_faults
from toolagent_service.agents.coding import CODING
from toolagent_service.contracts.model import ToolUse

SNAPSHOT = Path(__file__).parent / "offers.json"
SPECIFIED = {
    "create_docker_env": ({"image"}, {"mem_limit", "nano_cpus", "ports", "volumes", "use_gpu", "gpu_count"}),
    "run_in_docker": ({"container_id", "command"}, {"is_background", "timeout"}),
    "rebuild_docker_ports": ({"container_id", "ports"}, {"mem_limit", "nano_cpus"}),
    "destroy_docker_env": ({"container_id"}, set[str]()),
    "create_uv_project": ({"name"}, {"python_version"}),
    "run_in_uv": ({"project_dir", "command"}, {"is_background", "timeout"}),
    "uv_add_dependency": ({"project_dir", "package"}, {"dev"}),
    "write_file": ({"path", "content"}, {"mode"}),
    "read_file": ({"path"}, set[str]()),
    "register_tool": (
        {"tool_id", "name", "description", "runtime_type", "internal_port"},
        {"category", "input_schema", "output_schema", "container_id", "host_dir", "endpoint_path", "http_method", "group_ids"},
    ),
}


def test_the_tools_are_those_that_were_agreed_on(request: pytest.FixtureRequest) -> None:
    """`pytest tests/api tests/activities/agent_tools --update-snapshots` writes the snapshot."""
    offers = [offer.model_dump(mode="json") for offer in OFFERED.offers]
    if request.config.getoption("--update-snapshots", default=False):
        SNAPSHOT.write_text(json.dumps(offers, ensure_ascii=False, indent=1) + "\n")
    assert offers == json.loads(SNAPSHOT.read_text())


def test_they_are_the_ten_of_the_specification_with_its_parameters() -> None:
    offers = {offer.name: offer.input_schema for offer in OFFERED.offers}
    assert [*offers] == [*SPECIFIED]
    assert CODING.final_tool in offers
    for name, (required, optional) in SPECIFIED.items():
        schema = offers[name]
        properties, demanded = schema["properties"], schema.get("required", [])
        assert isinstance(properties, dict)
        assert isinstance(demanded, list)
        assert set(demanded) == required
        assert required | optional <= set(properties)
        assert schema_faults(schema) == ()


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("write_files", {}, "write_file"),
        ("write_file", {"path": "x"}, "'content' is missing"),
        ("write_file", {"path": "x", "content": "y", "modes": "append"}, "did you mean 'mode'"),
        ("write_file", {"path": "x", "content": "y", "mode": "insert"}, "mode"),
        ("run_in_uv", {"project_dir": "x", "command": "y", "timeout": -1}, "timeout"),
        ("create_docker_env", {"image": "x", "ports": [70_000]}, "ports"),
        ("write_file", {"path": "x", "content": "y"}, ""),
        ("create_docker_env", {"image": "x", "ports": ["8080"], "gpu_count": 1}, ""),
    ],
)
def test_arguments_that_do_not_fit_are_named_with_what_was_meant(name: str, given: dict[str, JsonValue], told: str) -> None:
    fault = OFFERED.fault_in(ToolUse(id="1", name=name, input=given))
    assert bool(fault) == bool(told)
    assert told in fault


def test_texts_are_shown_as_they_are() -> None:
    assert (
        shown({"exit_code": 1, "stdout": "a\n", "stderr": "", "ports": {"1": 2}}) == 'exit_code: 1\nstdout:\na\n\nstderr: \nports: {"1": 2}'
    )
