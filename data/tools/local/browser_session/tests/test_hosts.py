import pytest

from gateway import place_of, target_of
from hosts import is_allowed


@pytest.mark.parametrize(
    ("pattern", "host", "port", "allowed"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "EXAMPLE.com.", 80, True),
        ("example.com", "example.com", 8443, False),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com", "www.example.com", 443, False),
        ("*.example.com", "www.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*", "anything.test", 443, True),
        ("*", "anything.test", 25, False),
        ("[::1]:8000", "::1", 8000, True),
        ("[::1]", "::1", 80, True),
    ],
)
def test_a_pattern_means_what_it_means_to_the_service(pattern: str, host: str, port: int, allowed: bool) -> None:
    assert is_allowed([pattern], host, port) is allowed


@pytest.mark.parametrize(
    ("head", "target"),
    [
        (b"CONNECT example.com:443 HTTP/1.1\r\n\r\n", ("example.com", 443)),
        (b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", ("::1", 443)),
        (b"GET http://example.com/a HTTP/1.1\r\n\r\n", ("example.com", 80)),
        (b"GET http://example.com:81/a HTTP/1.1\r\n\r\n", ("example.com", 81)),
    ],
)
def test_a_request_names_its_target(head: bytes, target: tuple[str, int]) -> None:
    assert target_of(head) == target


@pytest.mark.parametrize("head", [b"GET /a HTTP/1.1\r\n\r\n", b"GET\r\n\r\n", b"GET file:///etc/passwd HTTP/1.1\r\n\r\n"])
def test_a_request_without_a_target_is_none(head: bytes) -> None:
    with pytest.raises(ValueError):
        target_of(head)


def test_a_place_has_its_port() -> None:
    assert [place_of(url) for url in ("https://a.example/b", "http://a.example:81", "about:blank")] == ["a.example:443", "a.example:81", ""]
