"""Known vulnerabilities of what a tool depends on, asked of pip-audit, which is run as a program in an environment of its own (ADR 25)."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from engine.runtimes.processes import Launcher

__all__ = ["PIP_AUDIT", "Advisories", "Judge", "Judged", "Looked", "judged_by", "refusal", "unjudged"]

PIP_AUDIT = "pip-audit==2.10.1"

Policy = Literal["warn", "refuse", "ignore"]

_MOST = 50
_SAID = 300
_FINDINGS = (0, 1)
"""Its exit codes when it has looked: nothing found, something found."""


class _Vulnerability(BaseModel):
    id: str
    fix_versions: tuple[str, ...] = ()


class _Dependency(BaseModel):
    name: str
    version: str = ""
    vulns: tuple[_Vulnerability, ...] = ()
    skip_reason: str | None = None


class _Report(BaseModel):
    dependencies: tuple[_Dependency, ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """`found` as `name version: ID (fixed in 1.2)`. `unknown` says why there is nothing to be said of all or some; empty when there is."""

    found: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """For the audit log."""
        return (*self.found, *((f"advisories unknown: {self.unknown}",) if self.unknown else ()))


class Advisories:
    """`program` is how pip-audit is started: `uv tool run --from pip-audit==… pip-audit`, with uv's own environment."""

    def __init__(self, launcher: Launcher, program: Sequence[str], environment: Mapping[str, str], *, timeout_s: float = 60.0) -> None:
        self._launcher = launcher
        self._program = tuple(program)
        self._environment = environment
        self._timeout_s = timeout_s

    @classmethod
    def of_uv(cls, launcher: Launcher, uv: str, environment: Mapping[str, str], *, timeout_s: float = 60.0) -> "Advisories":
        # uv goes by the one name, what pip-audit is made with by the other.
        bundle = {"REQUESTS_CA_BUNDLE": environment["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in environment else {}
        return cls(launcher, (uv, "tool", "run", "--from", PIP_AUDIT, "pip-audit"), {**bundle, **environment}, timeout_s=timeout_s)

    async def look(self, requirements: Path) -> Looked:
        """What is known of a list of exact versions (`name==version`, with or without hashes) at an absolute path.

        Never fails: what cannot be found out is `unknown`.
        """
        with tempfile.TemporaryDirectory(prefix="advisories-") as folder:
            return await self._look(requirements, Path(folder))

    async def _look(self, requirements: Path, folder: Path) -> Looked:
        report = folder / "report.json"
        # Nothing is resolved or built: only what the list names is looked up.
        options = ("--requirement", str(requirements), "--no-deps", "--disable-pip", "--progress-spinner", "off")
        output = ("--format", "json", "--output", str(report), "--timeout", "10")
        command = (*self._program, *options, *output)
        try:
            process = await self._launcher.launch(command, folder=folder, logs=folder, environment=self._environment)
        except OSError as error:
            return Looked(unknown=f"pip-audit could not be started ({error.strerror})")
        try:
            async with asyncio.timeout(self._timeout_s):
                code = await process.wait()
        except TimeoutError:
            return Looked(unknown=f"pip-audit did not end within {self._timeout_s:g} s")
        finally:
            await process.kill()
        return (
            _read(report) if code in _FINDINGS and report.is_file() else Looked(unknown=f"pip-audit ended with code {code}{_why(folder)}")
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """`notes` are for the audit log; with a `refusal` nothing may be installed."""

    notes: tuple[str, ...] = ()
    refusal: str | None = None


Judge = Callable[[tuple[str, ...]], Awaitable[Judged]]
"""Of packages of Python, as `name==version`."""


async def unjudged(_packages: tuple[str, ...]) -> Judged:
    return Judged()


def judged_by(policy: Policy, advisories: Advisories) -> Judge:
    """As the policy of a host says."""

    async def judge(packages: tuple[str, ...]) -> Judged:
        if not packages:
            return Judged()
        with tempfile.TemporaryDirectory(prefix="packages-") as folder:
            requirements = Path(folder) / "requirements.txt"
            await asyncio.to_thread(requirements.write_text, "\n".join(packages), "utf-8")
            looked = await advisories.look(requirements)
        return Judged(looked.notes, refusal(policy, looked))

    return unjudged if policy == "ignore" else judge


def refusal(policy: Policy, looked: Looked) -> str | None:
    """Why nothing may be installed, if so. What is unknown is no reason to refuse: it is written down."""
    if policy != "refuse" or not looked.found:
        return None
    return f"The policy of this host refuses dependencies that are known to be vulnerable: {'; '.join(looked.found[:10])}."


def _read(report: Path) -> Looked:
    try:
        dependencies = _Report.model_validate_json(report.read_bytes()).dependencies
    except ValidationError:
        return Looked(unknown="pip-audit's report could not be read")
    found = tuple(
        f"{one.name} {one.version}: {vulnerability.id}{_fixed_in(vulnerability)}" for one in dependencies for vulnerability in one.vulns
    )
    skipped = tuple(one.name for one in dependencies if one.skip_reason is not None)
    unknown = f"the advisory source knows nothing of {', '.join(skipped[:10])}" if skipped else ""
    return Looked(found[:_MOST], unknown)


def _why(logs: Path) -> str:
    """The last thing that it said, which is the error of a Python program."""
    log = logs / "stderr.log"
    lines = log.read_text("utf-8", "replace").split("\n") if log.is_file() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:_SAID]}" if last else ""


def _fixed_in(vulnerability: _Vulnerability) -> str:
    return f" (fixed in {', '.join(vulnerability.fix_versions)})" if vulnerability.fix_versions else ""
