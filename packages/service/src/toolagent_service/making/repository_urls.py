"""Where in a repository a task begins: addresses as people copy them from a browser, and the task's own `ref` and `path`."""

import re
from dataclasses import dataclass

from toolagent.contracts.task_specs import GithubDeploy

_TREE = re.compile(r"(https?://[^/]+/[^?#]+?)/(?:-/)?(?:tree|blob)/([^/?#]+)(?:/([^?#]*?))?/?(?:[?#].*)?$")
_DOTS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """`ref` is a branch, a tag or a commit; empty: the repository's own. `path` is a folder of it; empty: its top."""

    url: str
    ref: str = ""
    path: str = ""


def place_of_repository(spec: GithubDeploy) -> RepositoryPlace:
    """`…/tree/<ref>/<path>` names all three; what the task says itself goes before. A ref with a slash in it has to be said in `ref`."""
    found = _TREE.fullmatch(spec.repo_url)
    url, ref, path = (found[1], found[2], found[3] or "") if found else (spec.repo_url, "", "")
    whole = spec.path if spec.path is not None else path
    return RepositoryPlace(url, spec.ref or ref, "/".join(part for part in whole.split("/") if part not in _DOTS))
