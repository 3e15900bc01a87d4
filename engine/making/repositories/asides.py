"""Which files of a repository are for something else than what it is for: by the folders that they are in."""

_EXAMPLES = frozenset({"test", "tests", "testing", "example", "examples", "sample", "samples", "docs", "doc", "demo", "benchmarks"})
_ASIDE = _EXAMPLES | {"scripts"}


def is_aside(path: str) -> bool:
    """Whether a file is in a folder for something else than what the repository is for."""
    return _is_below(path, _ASIDE)


def is_example(path: str) -> bool:
    """Whether it is in a folder that shows or tries what the repository is for."""
    return _is_below(path, _EXAMPLES)


def _is_below(path: str, names: frozenset[str]) -> bool:
    return any(part.lower() in names for part in path.split("/")[:-1])
