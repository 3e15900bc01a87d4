"""`python -m workers`: usage, help, and unusable settings."""

import gc
import importlib
from pathlib import Path

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


def test_the_collector_pauses_only_while_a_command_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "loaded_by_a_test.py").write_text("import gc\n\npaused = not gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    # It ends before logging is set up, which would outlast the test.
    monkeypatch.setattr("workers.__main__._COMMANDS", {"verify": "loaded_by_a_test:command"})
    with pytest.raises(AttributeError):
        main(["verify"])
    assert importlib.import_module("loaded_by_a_test").paused
    assert gc.isenabled()
