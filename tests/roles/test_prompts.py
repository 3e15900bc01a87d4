"""Prompts are files, identified by their content."""

from pathlib import Path

import pytest

from engine.roles.prompts import PromptMissing, Prompts

SHIPPED = Path(__file__).parents[2] / "data" / "prompts"
TOOLS = (
    "create_docker_env",
    "run_in_docker",
    "rebuild_docker_ports",
    "destroy_docker_env",
    "create_uv_project",
    "run_in_uv",
    "uv_add_dependency",
    "write_file",
    "read_file",
    "register_tool",
)


@pytest.mark.parametrize("name", ["coding", "repair"])
def test_the_shipped_prompts_name_every_tool(name: str) -> None:
    prompt = Prompts(SHIPPED).get(name)
    assert [tool for tool in TOOLS if f"`{tool}`" not in prompt.text] == []
    assert "main.py --port N" in prompt.text


def test_a_prompt_that_says_something_else_has_another_version(tmp_path: Path) -> None:
    prompts = Prompts(tmp_path)
    file = tmp_path / "coding.md"
    file.write_text("Make a tool.\n", "utf-8")
    first = prompts.get("coding")
    file.write_bytes(b"Make a tool.\r\n\r\n")
    same = prompts.get("coding")
    file.write_text("Make a good tool.\n", "utf-8")
    other = prompts.get("coding")
    assert first == same
    assert first.label == "coding@16fea2988fd0", "the same text has the same version in every process"
    assert len({first.label, other.label}) == 2


@pytest.mark.parametrize("content", [None, b" \n", b"\xff\xfe"])
def test_a_prompt_that_is_missing_empty_or_no_text_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "coding.md").write_bytes(content)
    with pytest.raises(PromptMissing, match="coding"):
        Prompts(tmp_path).get("coding")
