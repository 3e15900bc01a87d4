"""Recognises package names that imitate a popular one, or that a model misremembered."""

import re
from collections.abc import Callable, Iterable
from operator import itemgetter

from packaging.utils import canonicalize_name
from rapidfuzz import process
from rapidfuzz.distance import OSA
from rapidfuzz.fuzz import ratio

from engine.making.dependencies.popular import CERTAIN_AS_WRITTEN, NEVER_CERTAIN, PopularPackages

_SLIP_FROM = 5
"""Shorter names have too many legitimate neighbours: only look-alikes count."""
_TWO_SLIPS_FROM = 11
_TARGETS = 2000
"""Names that attackers imitate. Other well-known names are legitimate neighbours of many of them."""
_LIKE, _SUGGESTED = 75.0, 3
_JOINED_FROM = 5
_LONGEST = 200
"""No popular name is nearly as long. The time to compare a name grows with the square of its length."""

_LOOKS_LIKE = str.maketrans({"0": "o", "1": "l", "3": "e", "5": "s", "i": "l", "j": "l"})
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_NUMBERS = re.compile(r"\d+")
_RUN = re.compile(r"(.)\1+")
_EMPTY_WORDS = frozenset(
    (
        *("python", "python2", "python3", "py", "py2", "py3", "lib", "libs", "library", "pip", "pypi", "package", "pkg", "module"),
        *("official", "original", "real", "latest", "new", "stable", "fork", "install", "installer"),
    )
)
"""Words that add no meaning to a name. Others, such as `async`, `client`, `types` or `plugin`, occur in names of honest packages."""
_JOINED = re.compile(r"^(?:python3?|py3?)(?P<rest>.+)$|^(?P<rest2>.+?)(?:python3?|py|lib|\d+)$")


class NearMisses:
    """Judges normalised names. Building it takes some milliseconds."""

    def __init__(self, popular: PopularPackages) -> None:
        self._popular = popular
        self._known = frozenset(popular.names)
        self._names = {name: name for name in popular.names} | dict(popular.by_import)
        self._targets = popular.names[:_TARGETS]
        self._same = {key: _by(key, self._targets) for key in (_look, _letters, _words)}

    def is_popular(self, name: str) -> bool:
        return name in self._known

    def package_of_import(self, name: str) -> str | None:
        """The package that is imported by this name, if no popular package has the name itself."""
        return self._popular.by_import.get(name)

    def well_known(self, module: str) -> str | None:
        """The popular package that provides this module, if that is certain."""
        name = canonicalize_name(module)
        if name in NEVER_CERTAIN and module not in CERTAIN_AS_WRITTEN:
            return None
        return self.package_of_import(name) or (name if self.is_popular(name) else None)

    def find(self, name: str) -> str | None:
        """The popular package that this name may be taken for; None if the name is popular itself, or like none."""
        if name in self._known or len(name) > _LONGEST:
            return None
        return self._same_to_the_eye(name) or self._with_nothing_added(name) or self._a_slip_away(name)

    def suggestions(self, name: str) -> tuple[str, ...]:
        """Popular packages that may have been meant, the likeliest first."""
        found = process.extract(name, self._popular.names, scorer=ratio, score_cutoff=_LIKE, limit=_SUGGESTED)
        return tuple(package for package, *_ in found)

    def _same_to_the_eye(self, name: str) -> str | None:
        """Swapped words, other or no separators, doubled letters, a digit that looks like a letter."""
        return next((names[key(name)] for key, names in self._same.items() if key(name) in names), None)

    def _with_nothing_added(self, name: str) -> str | None:
        """`python-requests`, `requests-lib`, `pyrequests`, `requests2`."""
        words = [word for word in name.split("-") if word not in _EMPTY_WORDS]
        rest = "-".join(words)
        if rest != name and rest in self._names:
            return self._names[rest]
        joined = _JOINED.match(name)
        if joined is None:
            return None
        inner = (joined["rest"] or joined["rest2"]).strip("-")
        return self._names.get(inner) if len(inner) >= _JOINED_FROM else None

    def _a_slip_away(self, name: str) -> str | None:
        """A letter more, less or other, or two swapped; in long words two of these."""
        found = process.extract_iter(name, self._targets, scorer=OSA.distance, score_cutoff=2)
        # The best known of the nearest ones.
        return min(((slips, other) for other, slips, _ in found if _is_a_slip(name, other)), key=itemgetter(0), default=(0, None))[1]


def _is_a_slip(name: str, other: str) -> bool:
    """Compares names of several words word by word, because names such as `pytest-cov` and `pytest-cpp` may be a family."""
    ours, theirs = name.split("-"), other.split("-")
    if len(ours) != len(theirs):
        return _is_a_slip_in(name, other)
    return all(_is_a_slip_in(one, two) for one, two in zip(ours, theirs, strict=True) if one != two)


def _is_a_slip_in(word: str, other: str) -> bool:
    length = min(len(word), len(other))
    slips = 0 if length < _SLIP_FROM else 1 if length < _TWO_SLIPS_FROM else 2
    return OSA.distance(word, other) <= slips and _NUMBERS.sub("", word) != _NUMBERS.sub("", other)


def _by(key: Callable[[str], str], names: Iterable[str]) -> dict[str, str]:
    """Names by what they look like; the best known of several."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(key(name), name)
    return found


def _look(name: str) -> str:
    """Equal for names that look the same."""
    for pair, letter in _PAIRS:
        name = name.replace(pair, letter)
    return name.translate(_LOOKS_LIKE).replace("-", "")


def _letters(name: str) -> str:
    return _RUN.sub(r"\1", name.replace("-", ""))


def _words(name: str) -> str:
    return "-".join(sorted(name.split("-")))
