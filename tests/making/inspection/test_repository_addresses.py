"""Which addresses of repositories are accepted, and how they are read."""

import pytest

from engine.making.repositories.addresses import CloneFailed, CloneFailure, RepositoryAddress, repository_address

DEFAULT = ("https", "ssh")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://example.com/o/n.git", RepositoryAddress("https", "https://example.com/o/n.git", "/o/n.git", "example.com", 443)),
        ("https://Example.com:8443/o", RepositoryAddress("https", "https://Example.com:8443/o", "/o", "example.com", 8443)),
        ("ssh://git@example.com/o/n", RepositoryAddress("ssh", "ssh://git@example.com/o/n", "/o/n", "example.com", 22, "git")),
        ("git@example.com:o/n", RepositoryAddress("ssh", "git@example.com:o/n", "o/n", "example.com", 22, "git")),
        ("https://[::1]:1/o", RepositoryAddress("https", "https://[::1]:1/o", "/o", "[::1]", 1)),
    ],
)
def test_an_address_is_read(text: str, address: RepositoryAddress) -> None:
    assert repository_address(text, DEFAULT) == address


def test_a_folder_is_an_address_where_that_is_allowed() -> None:
    assert repository_address("/a b/c", ("file",)).url == repository_address("file:///a%20b/c", ("file",)).url == "file:///a%20b/c"


@pytest.mark.parametrize("text", ["file:///etc", "/etc", "http://example.com/o/n", "git://example.com/o/n", "ftp://example.com/x"])
def test_a_scheme_that_is_not_named_is_not_allowed(text: str) -> None:
    with pytest.raises(CloneFailed) as caught:
        repository_address(text, DEFAULT)
    assert caught.value.kind is CloneFailure.NOT_ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--upload-pack=touch /tmp/x",
        "-u",
        "ext::sh -c id",
        "ext::id",
        "fd::17",
        "https://user:password@example.com/o/n",
        "https://token@example.com/o/n",
        "https://example.com/o/n?private_token=x",
        "https://example.com/o/n#x",
        "https://example.com",
        "https://-oProxyCommand=id/o/n",
        "ssh://-oProxyCommand=id/o",
        "ssh://git@-oProxyCommand=id/o",
        "ssh://-l@example.com/o",
        "-oProxyCommand=id:o",
        "git@-oProxyCommand:o",
        "https://example.com:99999/o",
        "https://example.com/o\n/n",
        "https://exa mple.com/o",
        "owner/name",
        "C:\\projects\\name",
        "file://host/share",
        "https://[::1/o",
        "https://example.com/o/n%0Aother",
        "ssh://git@example.com/o%00n",
        "file:///o%1Bn",
    ],
)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    with pytest.raises(CloneFailed) as caught:
        repository_address(text, (*DEFAULT, "file"))
    assert caught.value.kind is CloneFailure.REFUSED


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(CloneFailed) as caught:
        repository_address("https://user:hunter2@example.com/o/n", DEFAULT)
    assert "hunter2" not in caught.value.message
