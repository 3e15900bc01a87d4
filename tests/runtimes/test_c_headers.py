"""A C header that a build misses is told with the package that has it, or how to find that."""

import pytest

from engine.runtimes.environments.c_headers import header_remedy


@pytest.mark.parametrize(
    ("told", "remedy"),
    [
        ("  x.c:3:10: fatal error: Python.h: No such file or directory", "Install python3-dev"),
        ("src/x.h:1:10: fatal error: 'openssl/ssl.h' file not found", "Install libssl-dev"),
        ("fatal error: X11/Xlib.h: No such file or directory", "Install libx11-dev"),
        ("fatal error: own/thing.hpp: No such file or directory", "Find its package (`apt-file search own/thing.hpp`) and install it"),
    ],
)
def test_what_to_install_is_said(told: str, remedy: str) -> None:
    assert f" is not on this host. {remedy} (on Debian)" in header_remedy(f"building\n{told}\n   1 | #include")


@pytest.mark.parametrize(
    "told",
    [
        "",
        "error: 'x' undeclared",
        "FileNotFoundError: [Errno 2] No such file or directory: 'x.h'",
        *(
            f"fatal error: {name}: No such file or directory"
            for name in ("../src/x.h", "src/../x.h", "/x.h", "windows.h", "Windows.h", "string")
        ),
    ],
)
def test_of_another_failure_nothing_is_said(told: str) -> None:
    assert header_remedy(told) == ""
