"""Known vulnerabilities: findings of pip-audit are reported; a failure of pip-audit is not a finding."""

import asyncio
import os
import sys
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest
import uv
from structlog.testing import capture_logs

from engine.runtimes.auditing.advisories import Advisories, Judged, Looked, refusing
from engine.runtimes.auditing.advisory_warnings import AdvisoryWarnings
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from toolagent.contracts.audit import AuditEntry

PACKAGES = ("jinja2==2.10",)
FOUND = """{"dependencies": [
  {"name": "jinja2", "version": "2.10", "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"], "aliases": ["CVE-2019-10906"]}]},
  {"name": "six", "version": "1.17.0", "vulns": []},
  {"name": "odd", "skip_reason": "Dependency not found on PyPI and could not be audited: odd (1)"}
]}"""


ALL_FOUND = """
names = [line.split("==") for line in listed.split()]
found = [dict(name=name, version=version, vulns=[dict(id="X-1")]) for name, version in names]
report.write_text(json.dumps(dict(dependencies=found)))
sys.exit(1)"""
NONE_FOUND = "report.write_text('{\"dependencies\": []}')"


@pytest.fixture
def launcher(tmp_path: Path) -> Generator[Launcher]:
    owner = Owner.of_this_process(tmp_path)
    with Guardian(owner) as guardian:
        yield Launcher(owner, guardian, {"PATH": "/usr/bin:/bin"})


def standing_in(launcher: Launcher, tmp_path: Path, body: str, timeout_s: float = 30) -> Advisories:
    """A substitute for pip-audit that does as `body` says, with the file `report` and the text `listed`."""
    program = tmp_path / "pip_audit.py"
    program.write_text(f"{_HEAD.format(here=str(tmp_path))}\n{body}", "utf-8")
    return Advisories(launcher, (sys.executable, str(program)), {}, timeout_s=timeout_s)


_HEAD = """import json, os, pathlib, sys, time
report = pathlib.Path(sys.argv[sys.argv.index('--output') + 1])
listed = pathlib.Path(sys.argv[sys.argv.index('--requirement') + 1]).read_text()
pathlib.Path({here!r}, 'listed').write_text(listed)"""


def listed(tmp_path: Path) -> list[str]:
    """The packages of the last look-up."""
    return (tmp_path / "listed").read_text("utf-8").splitlines()


async def test_what_is_found_is_named_with_its_remedy(launcher: Launcher, tmp_path: Path) -> None:
    looked = await standing_in(launcher, tmp_path, f"report.write_text('''{FOUND}'''); sys.exit(1)").look(PACKAGES)
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
async def test_that_nothing_can_be_said_is_said_and_is_no_failure(launcher: Launcher, tmp_path: Path, body: str, unknown: str) -> None:
    assert await standing_in(launcher, tmp_path, body, timeout_s=1 if "sleep" in body else 30).look(PACKAGES) == Looked(
        unknown=unknown, has_looked=False
    )


async def test_a_program_that_is_not_there_is_no_failure(launcher: Launcher) -> None:
    assert (await Advisories(launcher, ("/nowhere/pip-audit",), {}).look(PACKAGES)).unknown


@pytest.mark.timeout(180)
async def test_the_real_program_says_what_it_knows(launcher: Launcher) -> None:
    """The source of advisories may be unreachable from a machine; the test accepts both answers."""
    looked = await Advisories.of_uv(launcher, uv.find_uv_bin(), {"HOME": str(Path.home())}, timeout_s=120).look(PACKAGES)
    assert any("jinja2 2.10" in one for one in looked.found) or looked.unknown


async def test_it_trusts_the_authorities_that_uv_trusts(launcher: Launcher, tmp_path: Path) -> None:
    uv_of_ours = tmp_path / "uv"
    uv_of_ours.write_text('#!/bin/sh\necho "$REQUESTS_CA_BUNDLE" >&2\nexit 3\n', "utf-8")
    uv_of_ours.chmod(0o755)
    looked = await Advisories.of_uv(launcher, str(uv_of_ours), {"SSL_CERT_FILE": "/our/authorities.pem"}).look(PACKAGES)
    assert looked.unknown == "pip-audit ended with code 3: /our/authorities.pem"


async def test_what_is_known_to_be_vulnerable_is_refused_by_a_policy_that_refuses(launcher: Launcher, tmp_path: Path) -> None:
    judged = await refusing(standing_in(launcher, tmp_path, ALL_FOUND))("tool", ("six==1.17.0", "jinja2==2.10"))
    refused = "The policy of this host refuses dependencies that are known to be vulnerable: six 1.17.0: X-1; jinja2 2.10: X-1."
    assert judged == Judged(("six 1.17.0: X-1", "jinja2 2.10: X-1"), refused)
    assert await refusing(standing_in(launcher, tmp_path, ALL_FOUND))("tool", ()) == Judged()


@pytest.mark.parametrize(
    "name", ["zz", "six==", "==1", "-r /etc/passwd==1", "six==1\n--index-url=x", "six==1 ; python_version<'3'", "six==*", "\udcff==1"]
)
async def test_what_is_no_name_and_version_is_refused_and_not_handed_on(launcher: Launcher, tmp_path: Path, name: str) -> None:
    advisories = standing_in(launcher, tmp_path, NONE_FOUND)
    looked = await advisories.look((name, "six==1.17.0"))
    assert (looked.is_their_doing, listed(tmp_path)) == (True, ["six==1.17.0"])
    assert (await refusing(advisories)("tool", ("six==1.17.0", name))).refusal
    assert (await advisories.look(("six==1.17.0",))) == Looked()


async def test_more_packages_than_can_be_looked_up_are_refused(launcher: Launcher, tmp_path: Path) -> None:
    judge = refusing(standing_in(launcher, tmp_path, NONE_FOUND))
    assert (await judge("tool", tuple(f"p{number}==1" for number in range(1001)))).refusal
    assert await judge("tool", tuple(f"p{number}==1" for number in range(1000))) == Judged()


@pytest.mark.parametrize(
    ("fails", "is_refused"), [("True", False), ("'odd' in listed", True)], ids=["nothing can be said of anything", "only of these"]
)
async def test_that_nothing_can_be_said_of_them_is_refused_unless_nobody_can_be_asked(
    launcher: Launcher, tmp_path: Path, fails: str, *, is_refused: bool
) -> None:
    advisories = standing_in(launcher, tmp_path, f"if {fails}: sys.exit('it fails')\n{NONE_FOUND}")
    judged = await refusing(advisories)("tool", ("odd==1",))
    assert judged.notes == ("advisories unknown: pip-audit ended with code 1: it fails",)
    assert (judged.refusal is not None) is is_refused


class Lines:
    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def note(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


async def test_a_warning_is_a_line_of_its_own_that_no_installation_waits_for(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "wait").touch()
    advisories = standing_in(launcher, tmp_path, f"while pathlib.Path({str(tmp_path / 'wait')!r}).exists(): time.sleep(0.01)\n{ALL_FOUND}")
    lines = Lines()
    warnings = AdvisoryWarnings(advisories, lines, "here")
    assert await warnings.judge("tool", ("jinja2==2.10",)) == Judged()
    assert lines.entries == []
    (tmp_path / "wait").unlink()
    with capture_logs() as logs:
        await warnings.settled()
    (line,) = lines.entries
    assert (line.action, line.tool_id, line.host, line.outcome, line.advisories) == (
        "build",
        "tool",
        "here",
        "success",
        ("jinja2 2.10: X-1",),
    )
    assert [(one["event"], one["log_level"], one["found"]) for one in logs] == [("vulnerable_dependencies", "warning", line.advisories)]


async def test_that_nobody_can_be_asked_is_said_once_in_the_log_and_fails_nothing(launcher: Launcher, tmp_path: Path) -> None:
    lines = Lines()
    warnings = AdvisoryWarnings(standing_in(launcher, tmp_path, "sys.exit('nowhere')"), lines, "here")
    with capture_logs() as logs:
        for tool_id in ("one", "two"):
            assert await warnings.judge(tool_id, PACKAGES) == Judged()
        await warnings.settled()
    assert [one["event"] for one in logs] == ["advisories_unknown"]
    assert [(line.tool_id, line.outcome, len(line.advisories)) for line in lines.entries] == [("one", "success", 1), ("two", "success", 1)]


async def test_nothing_is_left_of_a_look_that_the_service_does_not_wait_for(launcher: Launcher, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    advisories = standing_in(launcher, tmp_path, f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); time.sleep(600)")
    lines = Lines()
    warnings = AdvisoryWarnings(advisories, lines, "here")
    for _ in range(2):
        await warnings.judge("tool", PACKAGES)
    pid = int(await asyncio.to_thread((tmp_path / "pid").read_text))
    await warnings.close()
    assert not psutil.pid_exists(pid)
    assert await warnings.judge("tool", PACKAGES) == Judged()
    await warnings.settled()
    assert lines.entries == []
