"""A build's claims about its environment are not trusted, and cannot keep an installation out of the audit."""

import json
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.runtimes.auditing.advisories import Judge, Judged, unjudged
from engine.runtimes.environments.environments import Installed
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.scripts.accounts import ScriptAccounts
from tests.parts import installer_of
from tests.scripts.harness import IDENTITY, POLICY, Scripts, script_service
from tests.scripts.index import PackageIndex, package_index, resolve
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.sources import ScriptLanguage

FORGING = """import glob, os
    root = os.path.dirname(os.environ["HOME"])
    os.mkdir(glob.glob(root + "/env/lib/python*/site-packages")[0] + "/zz.dist-info")"""


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        yield index


def scripts_with(state: Path, root: Path, index: PackageIndex, judge: Judge) -> AbstractAsyncContextManager[Scripts]:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    @asynccontextmanager
    async def made() -> AsyncGenerator[Scripts]:
        installer = installer_of(indexes, Egress(state, (), IDENTITY, resolve=resolve), 60)
        async with script_service(state, root, state / "environments", installer=installer, policy=POLICY, judge=judge) as scripts:
            yield scripts

    return made()


class Lines:
    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def note(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


async def test_a_judge_is_told_what_stands_in_the_environment_also_what_is_no_package(
    tmp_path: Path, root: Path, index: PackageIndex
) -> None:
    told: list[tuple[str, tuple[str, ...]]] = []

    async def judge(tool_id: str, packages: tuple[str, ...]) -> Judged:
        told.append((tool_id, packages))
        return Judged(("unfit",), "It is refused")

    index.add_source("forging", "1.0", FORGING)
    async with scripts_with(tmp_path / "state", root, index, judge) as scripts:
        scripts.write("a/requirements.txt", "forging\n")
        scripts.write("a/main.py", "print(1)")
        with pytest.raises(ScriptFailure) as caught:
            await scripts.prepare("a/main.py")
        assert (caught.value.kind, told) == (ScriptErrorKind.DEPENDENCY, [("tool", ("forging==1.0", "zz"))])
        assert [(made.done, made.advisories) for made in scripts.installs] == [(False, ("unfit",))]


def test_names_that_are_no_text_stand_in_the_audit_too() -> None:
    lines = Lines()
    ScriptAccounts(lines, "here").installed(Installed("tool", datetime.now(UTC), (), ("forging==1.0", os.fsdecode(b"\xff==1")), 0.1))
    assert lines.entries[0].installs == ("forging==1.0", "?==1")


async def test_a_pipe_in_the_place_of_a_manifest_is_not_waited_for(tmp_path: Path, root: Path, index: PackageIndex) -> None:
    index.add_npm("piping", "1.0.0", "module.exports = 1", {"postinstall": "rm package.json && mkfifo package.json"})
    async with scripts_with(tmp_path / "state", root, index, unjudged) as scripts:
        scripts.write("a/package.json", json.dumps({"dependencies": {"piping": "1.0.0"}}))
        scripts.write("a/main.js", "console.log(1)")
        await scripts.prepare("a/main.js", ScriptLanguage.NODEJS)
        assert [made.packages for made in scripts.installs] == [("piping",)]
