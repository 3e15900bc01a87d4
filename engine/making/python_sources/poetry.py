"""Translates Poetry's dependencies (`^1.2`, `~1.2`, tables) to requirements."""

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from engine.making.python_sources.projects import Table

_CLAUSE = re.compile(r"(\^|~=|~|===?|!=|<=?|>=?|)\s*v?([0-9][^\s,|]*)")
_NUMBERS = re.compile(r"\d+")
_ELSEWHERE = ("git", "path", "url", "file")


class PoetryUnclear(ValueError):
    """A dependency has no translation; the message names it."""


def poetry_requirements(dependencies: Table) -> Iterator[str]:
    """The requirements, without `python` and optional ones. Raises PoetryUnclear."""
    for name, value in dependencies.values.items():
        if name.lower() == "python":
            continue
        match value:
            case str():
                yield _requirement(name, value)
            case dict():
                table = dependencies.table(name)
                if table.values.get("optional") is not True:
                    yield _of_table(name, table)
            case _:
                raise PoetryUnclear(f"What pyproject.toml says of the dependency {name!r} cannot be read.")


def poetry_specifier(version: str) -> str:
    """Translates a version of Poetry (`^3.9`) to a specifier. Raises PoetryUnclear."""
    return ",".join(_specifiers("python", version))


def _of_table(name: str, table: Table) -> str:
    if any(where in table.values for where in _ELSEWHERE):
        raise PoetryUnclear(f"The project takes {name!r} from elsewhere than the package index.")
    extras = f"[{','.join(table.texts('extras'))}]" if table.texts("extras") else ""
    return _requirement(f"{name}{extras}", table.text("version") or "*", table.text("markers"))


def _requirement(name: str, version: str, markers: str = "") -> str:
    written = f"{name}{','.join(_specifiers(name, version))}" + (f" ; {markers}" if markers else "")
    try:
        return str(Requirement(written))
    except (InvalidRequirement, RecursionError) as error:
        raise PoetryUnclear(f"The dependency {name!r} with the version {version!r} cannot be read.") from error


def _specifiers(name: str, version: str) -> Iterator[str]:
    text = version.strip()
    if text in ("", "*"):
        return
    for part in (one.strip() for one in text.split(",")):
        found = _CLAUSE.fullmatch(part)
        if found is None:
            raise PoetryUnclear(f"The dependency {name!r} with the version {version!r} cannot be read.")
        sign, number = found[1], found[2]
        match sign:
            case "^" | "~":
                yield f">={number}"
                yield f"<{_end(number, is_caret=sign == '^')}"
            case "":
                yield f"=={number}"
            case _:
                yield f"{sign}{number}"


def _end(number: str, *, is_caret: bool) -> str:
    """The first version that `^` or `~` excludes: the first number that is not 0, or the second number, plus one."""
    numbers = [int(one) for one in _NUMBERS.findall(re.split(r"[^0-9.]", number)[0])]
    last = len(numbers) - 1
    at = next((at for at, one in enumerate(numbers) if one), last) if is_caret else min(1, last)
    return ".".join(map(str, (*numbers[:at], numbers[at] + 1)))
