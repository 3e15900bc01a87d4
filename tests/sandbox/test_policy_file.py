"""The operator's policy file: its settings apply, and an unknown one is an error that names it."""

import json
from pathlib import Path

import pytest

from toolagent.contracts.sandbox import SandboxLevel, SandboxPolicy
from workers.failures import CannotRun
from workers.host.sandbox import policy_of
from workers.settings.tools import SandboxSettings


def policy(tmp_path: Path, text: str | bytes) -> SandboxPolicy:
    file = tmp_path / "policy.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return policy_of(SandboxSettings(sandbox_policy=file))


def test_without_a_file_it_is_what_the_page_says() -> None:
    assert policy_of(SandboxSettings(sandbox_policy=None)) == SandboxPolicy()


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert policy(tmp_path, "# nothing yet\n") == SandboxPolicy()


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    said = {"at_least": "bubblewrap", "hosts": ["*.example.com"], "ceilings": {"memoryBytes": 1024}}
    by_json = policy(tmp_path, json.dumps(said))
    assert by_json == policy(tmp_path, "at_least: bubblewrap\nhosts: ['*.example.com']\nceilings: {memoryBytes: 1024}\n")
    assert (by_json.at_least, by_json.hosts) == (SandboxLevel.BUBBLEWRAP, ("*.example.com",))


def test_a_limit_that_is_not_named_stays_as_it_is(tmp_path: Path) -> None:
    read = policy(tmp_path, "ceilings: {memoryBytes: 1024}\ndefaults: {wallSeconds: 5}\n")
    usual = SandboxPolicy()
    assert read.ceilings == usual.ceilings.model_copy(update={"memory_bytes": 1024})
    assert read.defaults == usual.defaults.model_copy(update={"wall_s": 5})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("at_leest: docker", "at_leest"),
        ("at_least: chroot", "at_least"),
        ("hosts: ['https://example.com/x']", "hosts.0"),
        ("hosts: example.com", "hosts"),
        ("write: 3", "write"),
        ("environment: ['A-B']", "environment.0"),
        ("ceilings: {memory: 5}", "ceilings.memory"),
        ("defaults: {memoryBytes: -5}", "defaults.memoryBytes"),
        ("ceilings: 5", "ceilings"),
        ("[1, 2]", "the file"),
        ("vulnerable_dependencies: perhaps", "vulnerable_dependencies"),
    ],
)
def test_what_nobody_understands_is_named_with_its_place_and_the_setting(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(CannotRun) as refused:
        policy(tmp_path, text)
    said = str(refused.value)
    assert f" {named}: " in said
    assert said.startswith("TOOL_AGENT_SANDBOX_POLICY: ")
    assert str(tmp_path / "policy.yaml") in said
    assert "docs/security.md" in said


@pytest.mark.parametrize("text", ["{", "a: [", b"\xff\xfe\x00"])
def test_what_cannot_be_read_is_no_policy(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(CannotRun, match="cannot be read"):
        policy(tmp_path, text)


def test_a_file_that_is_not_there_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot be read"):
        policy_of(SandboxSettings(sandbox_policy=tmp_path / "none.yaml"))
