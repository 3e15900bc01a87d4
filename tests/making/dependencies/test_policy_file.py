"""The operator's policy of dependencies: its file is enforced, and an invalid entry is an error that names it."""

import json
from pathlib import Path

import pytest

from engine.making.dependencies.gate import DependencyGate
from tests.making.dependencies.conftest import Gate, Index, Upload
from toolagent_service.contracts.dependency_policy import DependencyPolicy, DependencyVerdict, RefusalKind
from workers.failures import CannotRun
from workers.host.dependencies import dependency_policy_of
from workers.settings.making import CodingSettings


def policy(tmp_path: Path, text: str | bytes) -> DependencyPolicy:
    file = tmp_path / "packages.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return dependency_policy_of(CodingSettings(dependency_policy=file))


def test_without_a_file_and_with_one_that_says_nothing_it_is_what_the_page_says(tmp_path: Path) -> None:
    assert dependency_policy_of(CodingSettings(dependency_policy=None)) == policy(tmp_path, "# nothing yet\n") == DependencyPolicy()


def test_yaml_and_json_say_the_same_and_what_they_leave_out_stays(tmp_path: Path) -> None:
    by_json = policy(tmp_path, json.dumps({"deny": ["evil-*"], "trusted": ["acme-*"], "min_age_days": 2.5}))
    assert by_json == policy(tmp_path, "deny: [evil-*]\ntrusted: [acme-*]\nmin_age_days: 2.5\n")
    assert by_json == DependencyPolicy(deny=("evil-*",), trusted=("acme-*",), min_age_days=2.5)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("trust: [acme]", "trust"),
        ("deny: acme", "deny"),
        ("allow: ['acme tools']", "allow.0"),
        ("allow: ['acme>=2']", "allow.0"),
        ("trusted: [acme, 5]", "trusted.1"),
        ("min_age_days: -1", "min_age_days"),
        ("min_age_days: .inf", "min_age_days"),
        ("min_age_days: .nan", "min_age_days"),
        ("min_age_days: two weeks", "min_age_days"),
        ("undated: perhaps", "undated"),
        ("[1, 2]", "the file"),
        ("false", "the file"),
    ],
)
def test_what_nobody_understands_is_named_with_its_place_the_setting_and_the_page(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(CannotRun) as refused:
        policy(tmp_path, text)
    said = str(refused.value)
    assert f" {named}: " in said
    assert said.startswith("TOOL_AGENT_DEPENDENCY_POLICY: ")
    assert str(tmp_path / "packages.yaml") in said
    assert "docs/security.md" in said


@pytest.mark.parametrize("text", ["{", "a: [", b"\xff\xfe\x00"])
def test_what_cannot_be_read_is_no_policy(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(CannotRun, match=r"TOOL_AGENT_DEPENDENCY_POLICY: .* cannot be read"):
        policy(tmp_path, text)


def test_a_file_that_is_not_there_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot be read"):
        dependency_policy_of(CodingSettings(dependency_policy=tmp_path / "none.yaml"))


async def test_a_refusal_tells_what_whoever_runs_the_service_can_set_and_doing_so_lets_it_pass(
    gate: Gate, index: Index, tmp_path: Path
) -> None:
    index.packages = {name: (Upload("1.0"),) for name in ("acme-denied", "reqeusts", "acme-undated")} | {
        "acme-young": (Upload("1.0", days=1),)
    }
    dated, undated = ("acme-denied", "reqeusts", "acme-young"), ("acme-undated",)

    async def judged(gate: DependencyGate) -> list[DependencyVerdict]:
        verdicts: list[DependencyVerdict] = []
        for index.dated, wanted in ((True, dated), (False, undated)):
            verdicts += await gate.judge(wanted)
        return verdicts

    refusals = [verdict.refusal for verdict in await judged(gate(deny=("acme-denied",))) if verdict.refusal]
    expected = [(RefusalKind.DENIED, "`deny`"), (RefusalKind.NEAR_MISS, "`trusted`")]
    expected += [(RefusalKind.TOO_YOUNG, "`min_age_days`"), (RefusalKind.UNDATED, "`undated: allow`")]
    assert [refusal.kind for refusal in refusals] == [kind for kind, _ in expected]
    for refusal, (_, field) in zip(refusals, expected, strict=True):
        assert field in refusal.message
        assert "TOOL_AGENT_DEPENDENCY_POLICY" in refusal.message
    said = policy(tmp_path, "{deny: [], trusted: [reqeusts], min_age_days: 0.5, undated: allow}").model_dump()
    assert [verdict.passed for verdict in await judged(gate(**said))] == [True] * 4
