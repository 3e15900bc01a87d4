"""`.ci/run` is `make check`, and `make check` is everything."""

import os
import re
from pathlib import Path

import pytest

STEPS = ("lint", "types", "contracts", "test")
# What prepares a shell, or the machine, decides nothing about the code.
# `CI` only forbids to skip what this machine can have.
PREPARES = re.compile(r"(set|cd)\s.*|bash \.ci/machine|export CI=true")
# What only brings programs, the engine and the image that tests of containers need, and a model. Whoever wants more writes it here, and
# somebody looks at it.
_WANTED = r"\|\| wanted\+=\(\S+\)"
INSTALLS = re.compile(
    rf"set -euo pipefail|wanted=\(\)|command -v \S+ >/dev/null {_WANTED}|python3 -c 'import [a-z, ]+' 2>/dev/null {_WANTED}"
    r"|if \(\(\$\{#wanted\[@\]\}\)\); then|fi|export DEBIAN_FRONTEND=noninteractive"
    r"|apt-get (update|install)( -\S+)*( \"\$\{wanted\[@\]\}\")?"
    # PostgreSQL has its programs in a folder of its own; its package would also start a server.
    r"|if ! compgen -G '[\w/*]+' >/dev/null; then|wanted\+=\(\S+\)"
    r"|compgen -G '[\w/*.]+' >/dev/null \|\| wanted\+=\(\S+\)"
    # So would that of OpenSSH.
    r"|if \[ ! -x /usr/sbin/sshd \]; then|mkdir -p /etc/ssh|touch /etc/ssh/sshd_not_to_be_run"
    r"|mkdir -p /etc/postgresql-common/createcluster\.d"
    r"|echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster\.d/tool-agent\.conf"
    r"|command -v docker >/dev/null \|\| apt-get install( -\S+)* docker-cli"
    r"|bash \"\$\(dirname \"\$0\"\)/(engine|\.\./deploy/(sandbox-image|local-model)/build)\""
)
CHECKS = re.compile(r"\b(make|pytest|ruff|basedpyright|lint-imports)\b")
CALLS_CHECK = re.compile(r"(exec\s+)?make(\s+-\S+)*\s+check")


def _prerequisites(makefile: str, target: str) -> list[str]:
    found = re.search(rf"^{re.escape(target)}:(?!=)([^#\n]*)", makefile, re.MULTILINE)
    return found.group(1).split() if found else []


def _recipe(makefile: str, target: str) -> list[str]:
    found = re.search(rf"^{re.escape(target)}:(?!=)[^\n]*\n((?:\t[^\n]*\n?)*)", makefile, re.MULTILINE)
    return found.group(1).split("\n\t") if found and found.group(1) else []


def _decisions(script: str) -> list[str]:
    """The commands of a script that do more than prepare the shell."""
    lines = [line.strip() for line in script.splitlines()]
    return [line for line in lines if line and not line.startswith("#") and not PREPARES.fullmatch(line)]


def _only_checks(script: str) -> bool:
    commands = _decisions(script)
    return len(commands) == 1 and CALLS_CHECK.fullmatch(commands[0]) is not None


def _other_than_installs(script: str) -> list[str]:
    lines = [line.strip() for line in script.splitlines()]
    return [line for line in lines if line and not line.startswith("#") and not INSTALLS.fullmatch(line)]


def test_check_is_every_step_and_nothing_of_its_own(root: Path) -> None:
    makefile = (root / "Makefile").read_text("utf-8")
    assert set(STEPS) <= set(_prerequisites(makefile, "check"))
    assert _recipe(makefile, "check") == []
    assert [step for step in STEPS if not _recipe(makefile, step)] == []


def test_the_machine_runs_check_and_nothing_else(root: Path) -> None:
    script = root / ".ci/run"
    assert script.is_file(), "Write .ci/run: it changes to the root and calls `make check`."
    assert os.access(script, os.X_OK), "Make .ci/run executable."
    assert _only_checks(script.read_text("utf-8"))


def test_preparing_the_machine_only_installs(root: Path) -> None:
    assert _other_than_installs((root / ".ci/machine").read_text("utf-8")) == []


@pytest.mark.parametrize("script", [".ci/engine", "deploy/sandbox-image/build", "deploy/local-model/build"])
def test_what_prepares_the_machine_besides_judges_no_code(root: Path, script: str) -> None:
    lines = (root / script).read_text("utf-8").splitlines()
    assert [line for line in lines if CHECKS.search(line) and not line.startswith("#")] == []


@pytest.mark.parametrize(
    "line",
    [
        "make lint",
        "pytest -k fast",
        "apt-get update && ruff check",
        "command -v make >/dev/null || make test",
        "bash .ci/more",
        'bash "$(dirname "$0")/more"',
        "apt-get install -y; make test",
    ],
)
def test_a_preparation_that_does_more_is_caught(line: str) -> None:
    assert _other_than_installs(f"set -euo pipefail\n{line}\n") == [line]


@pytest.mark.parametrize(
    "script", ["", "make test", "make check\npytest -k fast", "ruff check .\nmake check", "make check || true", "make checkers"]
)
def test_a_script_that_checks_otherwise_is_caught(script: str) -> None:
    assert not _only_checks(script)


def test_a_script_that_prepares_and_checks_passes() -> None:
    assert _only_checks('#!/bin/sh\nset -eu\ncd "$(dirname "$0")/.."\nexec make check\n')


def test_a_check_that_lacks_a_step_or_does_its_own_is_seen() -> None:
    assert _prerequisites("check: lint test ## all but types\n", "check") == ["lint", "test"]
    assert _recipe("check: lint\n\t@pytest\n", "check") == ["\t@pytest\n"]
