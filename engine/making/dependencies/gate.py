"""Judges the packages that machine-written code asks for, before they are installed."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from packaging.utils import canonicalize_name

from engine.making.dependencies.index_addresses import IndexAway
from engine.making.dependencies.index_pages import Project, Release
from engine.making.dependencies.near_misses import NearMisses
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.requirements import Asked, Refused, read_requirement, shown
from engine.making.dependencies.simple_index import SimpleIndex
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from toolagent_service.contracts.dependency_policy import DependencyPolicy, DependencyRefusal, DependencyVerdict, RefusalKind

_VERSIONS_TOLD = 5

_OPERATOR = "The operator of this service can"
_POLICY = "in the file that TOOL_AGENT_DEPENDENCY_POLICY names"
_VOUCH = f"{_OPERATOR} name it under `trusted`, or set `min_age_days`, {_POLICY}."


class DependencyGate:
    """The caller closes `index`."""

    def __init__(
        self,
        policy: DependencyPolicy,
        index: SimpleIndex,
        popular: PopularPackages,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._policy, self._index, self._now = policy, index, now
        self._names = NearMisses(popular)

    async def judge(self, requirements: Sequence[str]) -> tuple[DependencyVerdict, ...]:
        """One verdict for each requirement, in order. An index that does not answer is a refusal too."""
        return tuple(await asyncio.gather(*map(self._judge, requirements)))

    def packages_of_imports(self, names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The well-known packages that provide these modules, and the modules whose package is not certain."""
        by_name = {name: self._names.well_known(name) for name in sorted(names)}
        packages = dict.fromkeys(package for package in by_name.values() if package)
        return tuple(packages), tuple(name for name, package in by_name.items() if not package)

    async def _judge(self, text: str) -> DependencyVerdict:
        try:
            asked = read_requirement(text)
        except Refused as refused:
            return DependencyVerdict(requirement=shown(text), refusal=refused.refusal)
        verdict = DependencyVerdict(requirement=asked.text, name=asked.name)
        try:
            return verdict.model_copy(update={"not_after": await self._require(asked)})
        except Refused as refused:
            return verdict.model_copy(update={"refusal": refused.refusal})

    async def _require(self, asked: Asked) -> datetime | None:
        """The latest publication date of versions that pass, if there is a limit. Raises Refused."""
        is_trusted = _is_among(asked.name, self._policy.trusted)
        if _is_among(asked.name, self._policy.deny) or not _is_among(asked.name, self._policy.allow):
            raise Refused(
                RefusalKind.DENIED,
                f"The policy of this service does not let tools depend on {asked.name!r}. Do without it, or use another package. "
                f"{_OPERATOR} change that (`allow`, `deny`) {_POLICY}.",
            )
        if not is_trusted:
            self._require_own_name(asked.name)
        try:
            project = self._existing(asked, await self._index.project(asked.name))
        except IndexAway as error:
            raise Refused(
                RefusalKind.INDEX_UNAVAILABLE,
                f"{error} Whether there is a package {asked.name!r} is not known; nothing was installed. Try again later.",
            ) from error
        versions = set(asked.versions.filter([release.version for release in project.releases]))
        fitting = [release for release in project.releases if release.version in versions]
        if not fitting:
            message = f"No version of {asked.name!r} fits {str(asked.versions)!r}. The newest there are: {_told(project.releases)}."
            raise Refused(RefusalKind.NO_VERSION, message)
        if is_trusted or not self._policy.min_age_days:
            return None
        cutoff = self._now() - timedelta(days=self._policy.min_age_days)
        return self._require_age(asked, project, fitting, cutoff)

    def _require_own_name(self, name: str) -> None:
        if package := self._names.package_of_import(name):
            message = f"{name!r} is not the name of the package that you mean: it is called {package!r}. Ask for that."
            raise Refused(RefusalKind.IMPORT_NAME, message, (package,))
        if near := self._names.find(name):
            message = (
                f"{name!r} can be taken for the well-known package {near!r}, so it is not installed. Did you mean {near!r}? "
                f"{_OPERATOR} say that {name!r} itself is meant: under `trusted` {_POLICY}."
            )
            raise Refused(RefusalKind.NEAR_MISS, message, (near,))

    def _existing(self, asked: Asked, project: Project | None) -> Project:
        if project:
            return project
        near = self._names.suggestions(asked.name)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Look for a package that does exist, or do without."
        raise Refused(RefusalKind.UNKNOWN, f"The package index has no package {asked.name!r}. {hint}", near)

    def _require_age(self, asked: Asked, project: Project, fitting: Sequence[Release], cutoff: datetime) -> datetime | None:
        rule = f"What is installed must have been published for {self._policy.min_age_days:g} days."
        if project.first_at and project.first_at > cutoff:
            raise Refused(
                RefusalKind.TOO_YOUNG,
                f"The package {asked.name!r} was first published on {project.first_at:%Y-%m-%d}. {rule} "
                f"Use one that has been there for longer, or do without. {_VOUCH}",
            )
        if any(release.at and release.at <= cutoff for release in fitting):
            return cutoff
        if any(release.at is None for release in fitting):
            if self._policy.undated == "allow" or self._names.is_popular(asked.name):
                return None
            raise Refused(
                RefusalKind.UNDATED,
                f"The package index does not say since when there is {asked.name!r}, and only well-known packages are installed without "
                f"that. Use a well-known one, or do without. {_OPERATOR} name it under `trusted`, or say `undated: allow`, {_POLICY}.",
            )
        older = [release for release in project.releases if release.at and release.at <= cutoff]
        instead = f" Ask for an older one: {_told(older)}." if older else ""
        message = f"All versions of {asked.name!r} that fit {str(asked.versions)!r} are too new. {rule}{instead} {_VOUCH}"
        raise Refused(RefusalKind.TOO_YOUNG, message)


def refusals_of(verdicts: Iterable[DependencyVerdict]) -> list[DependencyRefusal]:
    """Raises ScriptFailure (`UnavailableError`) if the index did not answer, because no package is to blame for that."""
    refusals = [verdict.refusal for verdict in verdicts if verdict.refusal]
    for refusal in refusals:
        if refusal.kind is RefusalKind.INDEX_UNAVAILABLE:
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, refusal.message)
    return refusals


def not_after_of(verdicts: Iterable[DependencyVerdict]) -> datetime | None:
    """The date up to which the versions of all these packages were judged."""
    return min((verdict.not_after for verdict in verdicts if verdict.not_after), default=None)


def _is_among(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, canonicalize_name(pattern)) for pattern in patterns)


def _told(releases: Sequence[Release]) -> str:
    return ", ".join(str(release.version) for release in releases[:_VERSIONS_TOLD])
