"""The evidence of a version, as the command line shows it."""

from datetime import UTC, datetime

import pytest

from toolagent.cli.evidence import check_row, origins, summary
from toolagent.cli.render import show_versions
from toolagent.contracts.making import CheckResult, Evidence
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.versions import ToolVersion, ToolVersions

AT = datetime(2026, 11, 21, tzinfo=UTC)
CHECKS = (
    CheckResult(check="starts", passed=True, seconds=1.26, details="It was up."),
    CheckResult(check="health", passed=True, applies=False, details="It has no HTTP."),
    CheckResult(check="bad input", passed=False, details=f"{'x' * 200}\nmore"),
)
WITHOUT = Evidence(
    task_id="create_00000001", at=AT, checks=CHECKS, commit="c0ffee", source="file_1", lock="abc", seconds=2, total_seconds=9.5
)
BY_A_MODEL = Evidence(
    task_id="create_00000002",
    at=AT,
    provider="anthropic",
    model="claude-1",
    answered_by=("claude-1-20260101",),
    prompts=("coding@0123456789ab",),
    behaviour="verified",
    turns=5,
    lost_turns=1,
    tokens=12_345,
    cost_usd=0.5,
    unpriced_turns=2,
)


def test_a_summary_says_how_sure_one_is_who_made_it_and_for_how_much() -> None:
    assert summary(None) == ""
    assert summary(WITHOUT) == "unverified, 2 checks, no model, create_00000001"
    spent = "5 turns (1 broke off), 12,345 tokens, $0.5000 and 2 of unknown price"
    assert summary(BY_A_MODEL) == f"verified, 0 checks, claude-1 (anthropic), {spent}, create_00000002"


def test_checks_are_rows_of_one_line() -> None:
    rows = [check_row(check) for check in CHECKS]
    assert rows[:2] == [("starts", "ok", "1.3", "It was up."), ("health", "not asked", "0.0", "It has no HTTP.")]
    assert rows[2] == ("bad input", "failed", "0.0", f"{'x' * 120} …")


def test_what_is_not_there_has_no_line() -> None:
    assert [*origins(WITHOUT)] == [
        "behaviour: unverified, in round 1",
        "made by: no model, in 9.5 s, of which the gate took 2.0 s",
        "commit: c0ffee",
        "files: file_1",
        "lock: sha256:abc",
    ]
    said = [*origins(BY_A_MODEL)]
    assert said[2:] == ["prompts: coding@0123456789ab", "the model calls itself: claude-1-20260101"]


def test_versions_are_shown_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    common = {"tool_id": "a", "status": ToolStatus.ACTIVE, "created_at": AT}
    versions = tuple(
        ToolVersion.model_validate({**common, "version": version, "is_active": version == "1.0.1", "evidence": evidence})
        for version, evidence in (("1.0.1", BY_A_MODEL), ("1.0.0", None))
    )
    show_versions(ToolVersions(tool_id="a", active_version="1.0.1", versions=versions))
    _, active, other = capsys.readouterr().out.splitlines()
    assert active.split()[:3] == ["1.0.1", "active", "yes"]
    assert active.endswith(summary(BY_A_MODEL))
    assert "verified" not in other
