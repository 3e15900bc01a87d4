"""Known vulnerabilities: what pip-audit says is reported, and that it says nothing is no failure."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import uv

from engine.runtimes.advisories import Advisories, Judged, Looked, judged_by, refusal
from engine.runtimes.guardian import Guardian
from engine.runtimes.ownership import Owner
from engine.runtimes.processes import Launcher

FOUND = """{"dependencies": [
  {"name": "jinja2", "version": "2.10", "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"], "aliases": ["CVE-2019-10906"]}]},
  {"name": "six", "version": "1.17.0", "vulns": []},
  {"name": "odd", "skip_reason": "Dependency not found on PyPI and could not be audited: odd (1)"}
]}"""


@pytest.fixture
def launcher(tmp_path: Path) -> Generator[Launcher]:
    owner = Owner.of_this_process(tmp_path)
    with Guardian(owner) as guardian:
        yield Launcher(owner, guardian, {"PATH": "/usr/bin:/bin"})


def standing_in(launcher: Launcher, tmp_path: Path, body: str, timeout_s: float = 30) -> Advisories:
    """A program that is called as pip-audit is, and does as `body` says with the file `report`."""
    program = tmp_path / "pip_audit.py"
    program.write_text(f"import pathlib, sys, time\nreport = pathlib.Path(sys.argv[sys.argv.index('--output') + 1])\n{body}", "utf-8")
    return Advisories(launcher, (sys.executable, str(program)), {}, timeout_s=timeout_s)


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    (tmp_path / "requirements.lock").write_text("jinja2==2.10\n", "utf-8")
    return tmp_path / "requirements.lock"


async def test_what_is_found_is_named_with_its_remedy(launcher: Launcher, tmp_path: Path, requirements: Path) -> None:
    looked = await standing_in(launcher, tmp_path, f"report.write_text('''{FOUND}'''); sys.exit(1)").look(requirements)
    assert looked == Looked(("jinja2 2.10: PYSEC-2019-217 (fixed in 2.10.1)",), "the advisory source knows nothing of odd")
    assert looked.notes == (*looked.found, "advisories unknown: the advisory source knows nothing of odd")


@pytest.mark.parametrize(
    ("body", "unknown"),
    [
        ("sys.exit(2)", "pip-audit ended with code 2"),
        ("sys.exit('Traceback:\\n  nowhere to be reached\\n')", "pip-audit ended with code 1: nowhere to be reached"),
        ("sys.exit(0)", "pip-audit ended with code 0"),
        ("report.write_text('no json')", "pip-audit's report could not be read"),
        ("time.sleep(60)", "pip-audit did not end within 1 s"),
    ],
)
async def test_that_nothing_can_be_said_is_said_and_is_no_failure(
    launcher: Launcher, tmp_path: Path, requirements: Path, body: str, unknown: str
) -> None:
    assert await standing_in(launcher, tmp_path, body, timeout_s=1 if "sleep" in body else 30).look(requirements) == Looked(unknown=unknown)


async def test_a_program_that_is_not_there_is_no_failure(launcher: Launcher, requirements: Path) -> None:
    assert (await Advisories(launcher, ("/nowhere/pip-audit",), {}).look(requirements)).unknown


@pytest.mark.timeout(180)
async def test_the_real_program_reads_a_lock_and_says_what_it_knows(launcher: Launcher, requirements: Path, tmp_path: Path) -> None:
    """Whether the source of advisories is reachable differs from machine to machine; one of the two is said."""
    looked = await Advisories.of_uv(launcher, uv.find_uv_bin(), {"HOME": str(Path.home())}, timeout_s=120).look(requirements)
    assert any("jinja2 2.10" in one for one in looked.found) or looked.unknown


async def test_it_trusts_the_authorities_that_uv_trusts(launcher: Launcher, tmp_path: Path, requirements: Path) -> None:
    uv_of_ours = tmp_path / "uv"
    uv_of_ours.write_text('#!/bin/sh\necho "$REQUESTS_CA_BUNDLE" >&2\nexit 3\n', "utf-8")
    uv_of_ours.chmod(0o755)
    looked = await Advisories.of_uv(launcher, str(uv_of_ours), {"SSL_CERT_FILE": "/our/authorities.pem"}).look(requirements)
    assert looked == Looked(unknown="pip-audit ended with code 3: /our/authorities.pem")


@pytest.mark.parametrize(("policy", "is_refused"), [("warn", False), ("ignore", False), ("refuse", True)])
def test_only_what_is_known_to_be_vulnerable_is_refused_and_only_by_policy(policy: str, *, is_refused: bool) -> None:
    found = Looked(("jinja2 2.10: PYSEC-2019-217",))
    assert policy in {"warn", "ignore", "refuse"}
    assert (refusal("refuse" if policy == "refuse" else "warn", found) is not None) is is_refused
    assert refusal("refuse", Looked(unknown="nothing is known")) is None


async def test_the_packages_of_an_environment_are_judged_as_the_policy_says(launcher: Launcher, tmp_path: Path) -> None:
    # It finds fault with everything that the list names.
    body = (
        "names = [line.split('==') for line in pathlib.Path(sys.argv[2]).read_text().split()]\n"
        "import json\n"
        "found = [dict(name=name, version=version, vulns=[dict(id='X-1')]) for name, version in names]\n"
        "report.write_text(json.dumps(dict(dependencies=found)))\n"
        "sys.exit(1)"
    )
    advisories, packages = standing_in(launcher, tmp_path, body), ("six==1.17.0", "jinja2==2.10")
    notes = ("six 1.17.0: X-1", "jinja2 2.10: X-1")
    refused = "The policy of this host refuses dependencies that are known to be vulnerable: six 1.17.0: X-1; jinja2 2.10: X-1."
    assert await judged_by("refuse", advisories)(packages) == Judged(notes, refused)
    assert await judged_by("warn", advisories)(packages) == Judged(notes)
    assert await judged_by("ignore", advisories)(packages) == Judged()
    assert await judged_by("refuse", advisories)(()) == Judged()
