"""The gate that a package passes before machine-written code gets it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from packaging.utils import canonicalize_name
from packaging.version import Version

from engine.making.dependencies.index_addresses import IndexAway
from engine.making.dependencies.index_pages import Project, Release
from engine.making.dependencies.near_misses import NearMisses
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.requirements import Asked, Refused, read_requirement, shown
from engine.making.dependencies.simple_index import SimpleIndex
from toolagent_service.contracts.dependency_policy import DependencyPolicy, DependencyVerdict, RefusalKind

_VERSIONS_TOLD = 5

_OPERATOR = "The operator of this service can"
_POLICY = "in the file that TOOL_AGENT_DEPENDENCY_POLICY names"
_VOUCH = f"{_OPERATOR} name it under `trusted`, or set `min_age_days`, {_POLICY}."


def _now() -> datetime:
    return datetime.now(UTC)


class DependencyGate:
    """The caller closes `index`."""

    def __init__(self, policy: DependencyPolicy, index: SimpleIndex, popular: PopularPackages, now: Callable[[], datetime] = _now) -> None:
        self._policy, self._index, self._now = policy, index, now
        self._names = NearMisses(popular)

    async def judge(self, requirements: Sequence[str]) -> tuple[DependencyVerdict, ...]:
        """One verdict each, in their order. Verdicts report every problem, also an index that does not answer."""
        return tuple(await asyncio.gather(*map(self._judge, requirements)))

    def packages_of_imports(self, names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The well-known packages that modules of these names come from, and the names of which that is not certain."""
        by_name = {name: self._names.well_known(canonicalize_name(name)) for name in sorted(names)}
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
        """Up to when versions were published that pass, where that is known. Raises Refused."""
        is_trusted = _is_among(asked.name, self._policy.trusted)
        self._require_policy(asked.name)
        if not is_trusted:
            self._require_own_name(asked.name)
        try:
            project = await self._index.project(asked.name)
        except IndexAway as error:
            message = f"{error} Whether there is a package {asked.name!r} is not known; nothing was installed. Try again later."
            raise Refused(RefusalKind.INDEX_UNAVAILABLE, message) from error
        fitting = self._fitting(asked, project)
        if is_trusted or not self._policy.min_age_days:
            return None
        cutoff = self._now() - timedelta(days=self._policy.min_age_days)
        return self._require_age(asked, project, fitting, cutoff)

    def _require_policy(self, name: str) -> None:
        if _is_among(name, self._policy.deny) or not _is_among(name, self._policy.allow):
            message = (
                f"The policy of this service does not let tools depend on {name!r}. Do without it, or use another package. "
                f"{_OPERATOR} change that (`allow`, `deny`) {_POLICY}."
            )
            raise Refused(RefusalKind.DENIED, message)

    def _require_own_name(self, name: str) -> None:
        package = self._names.package_of_import(name)
        if package is not None:
            message = f"{name!r} is not the name of the package that you mean: it is called {package!r}. Ask for that."
            raise Refused(RefusalKind.IMPORT_NAME, message, (package,))
        near = self._names.find(name)
        if near is not None:
            message = (
                f"{name!r} can be taken for the well-known package {near!r}, so it is not installed. Did you mean {near!r}? "
                f"{_OPERATOR} say that {name!r} itself is meant: under `trusted` {_POLICY}."
            )
            raise Refused(RefusalKind.NEAR_MISS, message, (near,))

    def _fitting(self, asked: Asked, project: Project | None) -> tuple[Release, ...]:
        if project is None:
            near = self._names.suggestions(asked.name)
            hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else "Look for a package that does exist, or do without."
            raise Refused(RefusalKind.UNKNOWN, f"The package index has no package {asked.name!r}. {hint}", near)
        versions = set(asked.versions.filter([release.version for release in project.releases]))
        fitting = tuple(release for release in project.releases if release.version in versions)
        if not fitting:
            newest = _told(release.version for release in project.releases[:_VERSIONS_TOLD])
            message = f"No version of {asked.name!r} fits {str(asked.versions)!r}. The newest there are: {newest}."
            raise Refused(RefusalKind.NO_VERSION, message)
        return fitting

    def _require_age(self, asked: Asked, project: Project | None, fitting: Sequence[Release], cutoff: datetime) -> datetime | None:
        first_at = project.first_at if project else None
        if first_at is not None and first_at > cutoff:
            message = (
                f"The package {asked.name!r} was first published on {first_at:%Y-%m-%d}. {self._rule} "
                f"Use one that has been there for longer, or do without. {_VOUCH}"
            )
            raise Refused(RefusalKind.TOO_YOUNG, message)
        if any(release.at is not None and release.at <= cutoff for release in fitting):
            return cutoff
        if any(release.at is None for release in fitting):
            return self._undated(asked.name)
        older = [release.version for release in project.releases if release.at and release.at <= cutoff] if project else []
        instead = f" Ask for an older one: {_told(older[:_VERSIONS_TOLD])}." if older else ""
        message = f"All versions of {asked.name!r} that fit {str(asked.versions)!r} are too new. {self._rule}{instead} {_VOUCH}"
        raise Refused(RefusalKind.TOO_YOUNG, message)

    def _undated(self, name: str) -> None:
        if self._policy.undated == "refuse" and not self._names.is_popular(name):
            message = (
                f"The package index does not say since when there is {name!r}, and only well-known packages are installed without that. "
                f"Use a well-known one, or do without. {_OPERATOR} name it under `trusted`, or say `undated: allow`, {_POLICY}."
            )
            raise Refused(RefusalKind.UNDATED, message)

    @property
    def _rule(self) -> str:
        return f"What is installed must have been published for {self._policy.min_age_days:g} days."


def _is_among(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, canonicalize_name(pattern)) for pattern in patterns)


def _told(versions: Iterable[Version]) -> str:
    return ", ".join(map(str, versions))
