"""`python -m workers`: usage, help, and settings that cannot be used."""

import pytest

from tool_agent.__main__ import started_by_name
from workers.__main__ import main


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["up", "--help"]])
def test_help_names_both_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "up " in said
    assert "demo " in said


@pytest.mark.parametrize("arguments", [[], ["no"], ["up", "demo"]])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_an_empty_key_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TOOL_AGENT_API_KEY", "")
    assert main(["up"]) == 2
    assert "TOOL_AGENT_API_KEY" in capsys.readouterr().err


def test_another_name_starts_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TOOL_AGENT_LOG_LEVEL", "chatty")
    assert started_by_name([]) == 2
    assert "TOOL_AGENT_LOG_LEVEL" in capsys.readouterr().err
    assert started_by_name(["--help"]) == 0
    assert started_by_name(["no"]) == 2
