"""Looks up known vulnerabilities of a tool's dependencies with pip-audit, a program in an environment of its own (ADR 25)."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from engine.disk.temporary import temporary_folder
from engine.runtimes.process.processes import Launcher

PIP_AUDIT = "pip-audit==2.10.1"

_MOST = 50
_MOST_PACKAGES = 1000
_SAID = 300
_EXACT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9._!+-]*", re.ASCII)
_HARMLESS = ("six==1.17.0",)
_FINDINGS = (0, 1)
"""pip-audit's exit codes after a look-up: nothing found, something found."""


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
    """`found` as `name version: ID (fixed in 1.2)`. `unknown` says why nothing is known of all or some packages, else it is empty.

    `has_looked`: pip-audit finished. `is_their_doing`: it did not, because of the packages.
    """

    found: tuple[str, ...] = ()
    unknown: str = ""
    has_looked: bool = True
    is_their_doing: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """For the audit log."""
        return (*self.found, *((f"advisories unknown: {self.unknown}",) if self.unknown else ()))


class Advisories:
    """`program` starts pip-audit: `uv tool run --from pip-audit==… pip-audit`, with uv's own environment."""

    def __init__(self, launcher: Launcher, program: Sequence[str], environment: Mapping[str, str], *, timeout_s: float = 60.0) -> None:
        self._launcher, self._program, self._environment, self._timeout_s = launcher, program, environment, timeout_s

    @classmethod
    def of_uv(cls, launcher: Launcher, uv: str, environment: Mapping[str, str], *, timeout_s: float = 60.0) -> "Advisories":
        # uv reads the one name, pip-audit's HTTP library the other.
        bundle = {"REQUESTS_CA_BUNDLE": environment["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in environment else {}
        return cls(launcher, (uv, "tool", "run", "--from", PIP_AUDIT, "pip-audit"), {**bundle, **environment}, timeout_s=timeout_s)

    async def look(self, packages: Sequence[str]) -> Looked:
        """Looks up exact versions (`name==version`). Never fails: what cannot be found out is `unknown`.

        Builds chose the names: one could be an option of pip, or several lines. Such names are not passed on.
        """
        if len(packages) > _MOST_PACKAGES:
            return replace(_blind(f"{len(packages)} packages are more than are looked up ({_MOST_PACKAGES})"), is_their_doing=True)
        unfit = [one for one in packages if _EXACT.fullmatch(one) is None]
        looked = await self._look([one for one in packages if one not in unfit])
        if not unfit:
            return looked
        told = f"{', '.join(ascii(one)[:_SAID] for one in unfit[:3])} is no name and version"
        return replace(looked, unknown="; ".join(filter(None, (told, looked.unknown))), is_their_doing=True)

    async def judge(self, packages: Sequence[str]) -> Looked:
        """Like `look`. If nothing can be found out, also finds whether the packages caused it, deliberately or not."""
        looked = await self.look(packages)
        # A look-up of other packages shows whether the service answers.
        if looked.has_looked or looked.is_their_doing or not (await self.look(_HARMLESS)).has_looked:
            return looked
        return replace(looked, is_their_doing=True)

    async def _look(self, packages: Sequence[str]) -> Looked:
        if not packages:
            return Looked()
        try:
            with temporary_folder("advisories-") as folder:
                return await self._run(packages, folder)
        except OSError as error:
            return _blind(f"pip-audit could not be run ({error.strerror})")

    async def _run(self, packages: Sequence[str], folder: Path) -> Looked:
        report, requirements = folder / "report.json", folder / "requirements.txt"
        await asyncio.to_thread(requirements.write_text, "".join(f"{one}\n" for one in packages), "ascii")
        # Nothing is resolved or built: only what the list names is looked up.
        options = ("--requirement", str(requirements), "--no-deps", "--disable-pip", "--progress-spinner", "off")
        output = ("--format", "json", "--output", str(report), "--timeout", "10")
        command = (*self._program, *options, *output)
        process = await self._launcher.launch(command, folder=folder, logs=folder, environment=self._environment)
        try:
            async with asyncio.timeout(self._timeout_s):
                code = await process.wait()
        except TimeoutError:
            return _blind(f"pip-audit did not end within {self._timeout_s:g} s")
        finally:
            await process.kill()
        return _read(report) if code in _FINDINGS and report.is_file() else _blind(f"pip-audit ended with code {code}{_why(folder)}")


@dataclass(frozen=True, slots=True)
class Judged:
    """`notes` are for the audit log; a `refusal` forbids the installation."""

    notes: tuple[str, ...] = ()
    refusal: str | None = None


Judge = Callable[[str, tuple[str, ...]], Awaitable[Judged]]
"""Judges the Python packages that were installed for a tool, as `name==version`."""


async def unjudged(_tool_id: str, _packages: tuple[str, ...]) -> Judged:
    return Judged()


def refusing(advisories: Advisories) -> Judge:
    """A judge that looks packages up before they are used."""

    async def judge(_tool_id: str, packages: tuple[str, ...]) -> Judged:
        looked = await advisories.judge(packages)
        return Judged(looked.notes, _refusal(looked))

    return judge


def _refusal(looked: Looked) -> str | None:
    """Why the installation is refused, or None. An unreachable service is recorded, but is no reason."""
    if looked.found:
        return f"The policy of this host refuses dependencies that are known to be vulnerable: {'; '.join(looked.found[:10])}."
    if looked.is_their_doing:
        return (
            f"The policy of this host refuses dependencies of which it cannot be found out whether they are vulnerable: {looked.unknown}."
        )
    return None


def _blind(why: str) -> Looked:
    return Looked(unknown=why, has_looked=False)


def _read(report: Path) -> Looked:
    try:
        dependencies = _Report.model_validate_json(report.read_bytes()).dependencies
    except ValidationError:
        return _blind("pip-audit's report could not be read")
    found = tuple(
        f"{one.name} {one.version}: {vulnerability.id}{_fixed_in(vulnerability)}" for one in dependencies for vulnerability in one.vulns
    )
    skipped = tuple(one.name for one in dependencies if one.skip_reason is not None)
    unknown = f"the advisory source knows nothing of {', '.join(skipped[:10])}" if skipped else ""
    return Looked(found[:_MOST], unknown)


def _why(logs: Path) -> str:
    """The last line of stderr: the error of a Python program."""
    log = logs / "stderr.log"
    last = log.read_text("utf-8", "replace").strip().split("\n")[-1] if log.is_file() else ""
    return f": {last.strip()[:_SAID]}" if last else ""


def _fixed_in(vulnerability: _Vulnerability) -> str:
    return f" (fixed in {', '.join(vulnerability.fix_versions)})" if vulnerability.fix_versions else ""
