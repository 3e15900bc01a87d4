"""The place in a repository that a task means: addresses copied from a browser, and the task's own `ref` and `path`."""

import re
from dataclasses import dataclass

from toolagent.contracts.task_specs import GithubDeploy

_TREE = re.compile(r"(https?://[^/]+/[^?#]+?)/(?:-/)?(?:tree|blob)/([^/?#]+)(?:/([^?#]*?))?/?(?:[?#].*)?$")
_DOTS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """`ref` is a branch, a tag or a commit; empty: the default branch. `path` is a folder; empty: the top."""

    url: str
    ref: str = ""
    path: str = ""


def place_of_repository(spec: GithubDeploy) -> RepositoryPlace:
    """`…/tree/<ref>/<path>` names all three. The task's own values take precedence. A ref with a slash must be given in `ref`."""
    found = _TREE.fullmatch(spec.repo_url)
    url, ref, path = (found[1], found[2], found[3] or "") if found else (spec.repo_url, "", "")
    whole = spec.path if spec.path is not None else path
    return RepositoryPlace(url, spec.ref or ref, "/".join(part for part in whole.split("/") if part not in _DOTS))
