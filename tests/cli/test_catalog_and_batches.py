"""Batches, versions, the export and large files, on a real server."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import Result

from toolagent.client.http import ToolAgentHttp, WrongContent
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.references import ResultReference

if TYPE_CHECKING:
    from tests.cli.conftest import Service

Invoke = Callable[..., Result]
FILE_ID = f"file_{'a' * 32}"


def test_a_batch_lists_how_its_calls_ended_and_a_failed_one_is_exit_code_1(toolagent: Invoke, service: "Service", tmp_path: Path) -> None:
    calls = [{"tool_id": "echo", "params": {"text": "a"}}, {"tool_id": "breaker"}]
    (tmp_path / "calls.json").write_text(json.dumps(calls), "utf-8")
    result = toolagent("batch", str(tmp_path / "calls.json"), "--ordered", "--key", "k")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[1].split()[:2] == ["echo", "success"]
    assert "execution_error" in lines[2]
    assert service.batches == [{"calls": calls, "ordered": True, "idempotency_key": "k", "mode": "async"}]
    assert "1 of 2 calls failed" in result.stderr


def test_a_batch_gives_its_results_as_json(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "calls.json").write_text('{"calls": [{"tool_id": "echo", "params": {"text": "a"}}]}', "utf-8")
    result = toolagent("batch", str(tmp_path / "calls.json"), "--json")
    ended = json.loads(result.stdout)
    assert (result.exit_code, ended["succeeded"], ended["results"][0]["result"]) == (0, 1, {"text": "a"})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[{"tool_id": "echo", "idempotancy_key": "k"}]', "calls[0].idempotancy_key"),
        ('{"calls": [{"tool_id": "echo"}], "orderd": true}', "ordered"),
    ],
)
def test_a_misspelt_field_is_named_and_nothing_is_sent(
    toolagent: Invoke, service: "Service", tmp_path: Path, text: str, named: str
) -> None:
    (tmp_path / "calls.json").write_text(text, "utf-8")
    result = toolagent("batch", str(tmp_path / "calls.json"))
    assert (result.exit_code, service.batches) == (2, [])
    assert named in result.stderr


def test_the_task_of_a_batch_that_has_ended_shows_its_calls(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "calls.json").write_text('[{"tool_id": "echo", "params": {"text": "a"}}, {"tool_id": "breaker"}]', "utf-8")
    begun = json.loads(toolagent("batch", str(tmp_path / "calls.json"), "--async").stdout)
    shown = toolagent("task", begun["task_id"])
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    assert lines[1].split()[:2] == ["echo", "success"]
    assert "execution_error" in lines[2]


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"calls": 1}', '[{"tool": "echo"}]'])
def test_a_file_that_is_no_batch_is_wrong_usage_and_nothing_is_sent(
    toolagent: Invoke, service: "Service", tmp_path: Path, text: str
) -> None:
    (tmp_path / "calls.json").write_text(text, "utf-8")
    assert toolagent("batch", str(tmp_path / "calls.json")).exit_code == 2
    assert service.batches == []


def test_versions_are_listed_and_changed(toolagent: Invoke) -> None:
    listed = toolagent("versions", "echo")
    assert [line.split()[:3] for line in listed.stdout.splitlines()[1:]][1] == ["1.1.0", "active", "yes"]
    changed = json.loads(toolagent("activate", "echo", "1.0.0", "--json").stdout)
    assert changed["active_version"] == "1.0.0"


def test_the_use_of_a_tool_is_shown(toolagent: Invoke) -> None:
    assert toolagent("usage", "echo").stdout.splitlines()[1].split()[:8] == ["echo", "2,000", "25.0%", "timeout", "1", "—", "0.123", "s"]
    assert json.loads(toolagent("usage", "echo", "--hours", "1", "--json").stdout)["calls"] == 3


def test_the_catalog_is_written_as_files(toolagent: Invoke, service: "Service", tmp_path: Path) -> None:
    service.documents["tools/a.b@1.0.0.tool.json"] = {"toolId": "a:b"}
    assert toolagent("export", str(tmp_path / "out")).exit_code == 0
    files = (path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert sorted(files) == ["groups.json", "registry.json", "tools/a.b@1.0.0.tool.json"]
    assert json.loads((tmp_path / "out/registry.json").read_text("utf-8")) == {"version": "2.0", "tools": []}


def test_a_catalog_file_that_is_there_is_replaced_only_by_force(toolagent: Invoke, service: "Service", tmp_path: Path) -> None:
    service.documents = {"a.json": {"new": 1}, "tools/b.json": {"new": 1}}
    there = tmp_path / "out/tools/b.json"
    there.parent.mkdir(parents=True)
    there.write_text("edited by hand")
    refused = toolagent("export", str(tmp_path / "out"))
    assert (refused.exit_code, there.read_text(), (tmp_path / "out/a.json").exists()) == (2, "edited by hand", False)
    assert str(there) in refused.stderr.replace("\n", "")
    assert toolagent("export", str(tmp_path / "out"), "--force").exit_code == 0
    assert json.loads(there.read_text()) == {"new": 1}


def test_the_audit_says_who_did_what_and_what_was_remarkable(toolagent: Invoke) -> None:
    result = toolagent("audit", "--tool", "custom:a", "--since", "2026-03-26")
    assert result.exit_code == 0, result.stderr
    line = " ".join(result.stdout.splitlines()[1:])
    told = ["custom:a 1.0.0", "build", "success", "1.50", "agent-7", "example.org:443: not allowed", "idna: X-1", "stderr cut", "idna==3.6"]
    assert [one for one in told if one not in line] == []
    assert "older" in result.stderr
    assert json.loads(toolagent("audit", "--json").stdout)["entries"][0]["installs"] == ["idna==3.6"]


@pytest.mark.parametrize("name", ["../x.json", "/x.json", "tools/../../x.json", ".x.json", "tools/.x.json", ""])
def test_a_catalog_file_that_would_lie_elsewhere_is_refused(toolagent: Invoke, service: "Service", tmp_path: Path, name: str) -> None:
    service.documents = {name: {}}
    assert toolagent("export", str(tmp_path / "out")).exit_code == 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_that_broke_off_is_gone_on_with_by_ranges(toolagent: Invoke, service: "Service", tmp_path: Path) -> None:
    content = bytes(range(256)) * 4000
    service.files[FILE_ID] = ("big.bin", content)
    service.breaks_after = 400_000
    target = tmp_path / "whole.bin"
    result = toolagent("file", "get", FILE_ID, "-o", str(target))
    assert (result.exit_code, target.read_bytes() == content) == (0, True), result.stderr
    assert service.ranges[0] == ""
    assert all(asked.startswith("bytes=") for asked in service.ranges[1:])
    assert len(service.ranges) > 1
    assert [path.name for path in tmp_path.iterdir()] == ["whole.bin"]


def test_a_large_result_is_fetched_whole_and_checked(service: "Service") -> None:
    content = json.dumps({"text": "x" * 1000}).encode()
    service.files[FILE_ID] = ("", content)
    digest = hashlib.sha256(content).hexdigest()
    reference = ResultReference(file=f"/files/{FILE_ID}", file_id=FILE_ID, size=len(content), sha256=digest, preview="{")
    result = ToolResult(status="success", result=reference.model_dump(mode="json"), is_reference=True)
    with ToolAgentHttp(service.url) as http:
        assert http.whole_result(result) == {"text": "x" * 1000}
        assert http.whole_result(ToolResult(status="success", result=1)) == 1
        service.files[FILE_ID] = ("", content.replace(b"x", b"y", 1))
        with pytest.raises(WrongContent):
            http.whole_result(result)
