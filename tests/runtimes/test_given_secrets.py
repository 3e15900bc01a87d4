"""A secret that was given to a tool is removed from all texts that are passed on."""

import base64
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from engine.runtimes.failures import CallFailed, StartFailed
from engine.runtimes.given_secrets import remember_given, without_given
from engine.runtimes.process.output import TAIL_BYTES, Capture
from engine.runtimes.variables import variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import LocalSource

SECRET = "hunter2/hunter2"  # noqa: S105 - a text to look for


def test_no_failure_holds_a_secret_that_a_tool_was_given_in_any_form() -> None:
    source = LocalSource(host_dir="x", environment={"TOKEN": "secret:TOKEN", "COLOUR": "blue"})
    assert variables_of(source, "x", {"TOKEN": SECRET}.get).secret == {"TOKEN": SECRET}
    written = f"GET /run?key={quote(SECRET, safe='')} blue\nBasic {base64.b64encode(SECRET.encode()).decode()}"
    failure = StartFailed(ErrorType.UNAVAILABLE, f"It said: {SECRET}", {"stderr": written, "lines": [{SECRET: SECRET}]})
    failure.explain(log=written)
    assert failure.message == "It said: ***"
    assert failure.details == {
        "stderr": "GET /run?key=*** blue\nBasic ***",
        "lines": [{"***": "***"}],
        "log": "GET /run?key=*** blue\nBasic ***",
    }


def test_what_is_too_short_to_be_told_from_words_stays() -> None:
    variables_of(LocalSource(host_dir="x", environment={"TOKEN": "secret:TOKEN"}), "x", {"TOKEN": "is"}.get)
    assert CallFailed(ErrorType.EXECUTION_ERROR, "It is so.").message == "It is so."


def test_a_secret_may_be_given_while_another_thread_removes_secrets_from_a_text() -> None:
    for number in range(100):
        remember_given(f"known-secret-{number}")
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as other:
            removed = other.submit(lambda: [without_given(f"bad {number}…") for number in range(40)])
            number = 0
            while not removed.done():
                remember_given(f"later-secret-{number % 100}")
                number += 1
            assert removed.result() == [f"bad {number}…" for number in range(40)]
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize(("rest", "shown"), [("\nlast", "last"), ("", "[… 6 earlier bytes left out]\n*** ")])
async def test_the_rest_of_a_long_log_has_no_part_of_a_secret(rest: str, shown: str) -> None:
    remember_given("plover-open")
    stream = Capture(TAIL_BYTES)
    stream.add(f"plover-open {'x' * (TAIL_BYTES - 6 - len(rest))}{rest}".encode())
    failure = StartFailed(ErrorType.UNAVAILABLE, "It ended.", {"stderr": "\n".join(stream.last_lines(20))})
    await stream.finish(0)
    assert str(failure.details["stderr"]).rstrip("x") == shown
