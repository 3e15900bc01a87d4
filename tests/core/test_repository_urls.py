"""Addresses as they are copied from a browser."""

import pytest

from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.making.repository_urls import RepositoryPlace, place_of_repository


def place(url: str, ref: str | None = None, path: str | None = None) -> RepositoryPlace:
    return place_of_repository(GithubDeploy(repo_url=url, tool_name="x", ref=ref, path=path))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/a/b", ("https://example.com/a/b", "", "")),
        ("https://example.com/a/b/tree/main", ("https://example.com/a/b", "main", "")),
        ("https://example.com/a/b/tree/v1.2/packages/api/", ("https://example.com/a/b", "v1.2", "packages/api")),
        ("https://example.com/a/b/-/tree/dev/x", ("https://example.com/a/b", "dev", "x")),
        ("git@example.com:a/tree.git", ("git@example.com:a/tree.git", "", "")),
    ],
)
def test_an_address_of_a_folder_names_repository_ref_and_path(url: str, expected: tuple[str, str, str]) -> None:
    assert place(url) == RepositoryPlace(*expected)


def test_what_the_task_says_goes_before() -> None:
    assert place("https://example.com/a/b/tree/main/x", ref="v2", path="./y//z/") == RepositoryPlace("https://example.com/a/b", "v2", "y/z")
