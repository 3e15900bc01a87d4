"""Recognises files of a repository that are not its main content, by the names of their folders."""

_EXAMPLES = frozenset({"test", "tests", "testing", "example", "examples", "sample", "samples", "docs", "doc", "demo", "benchmarks"})
_ASIDE = _EXAMPLES | {"scripts"}


def is_aside(path: str) -> bool:
    """Whether a file is in a folder of examples, tests, documents or scripts."""
    return _is_below(path, _ASIDE)


def is_example(path: str) -> bool:
    """Whether a file is in a folder of examples, tests or documents."""
    return _is_below(path, _EXAMPLES)


def _is_below(path: str, names: frozenset[str]) -> bool:
    return any(part.lower() in names for part in path.split("/")[:-1])
