"""Which exception of a log is reported as the one that the tool raised."""

from pathlib import Path

import pytest

from engine.making.gate.last_words import log_size, raised_in

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in a\n    b()\n'
ASIDE = f"Exception ignored in: <function A.__del__ at 0x7f>\n{TRACE}RuntimeError: Event loop is closed\n"
THREAD = f"Exception in thread Thread-1 (run):\n{TRACE}OSError: no network\n"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (f"{TRACE}app.errors.KeyError: 'a'\nINFO: done\n", "app.errors.KeyError: 'a'"),
        (f"{TRACE}AssertionError\n", "AssertionError"),
        ("TypeError [ERR_INVALID_ARG_TYPE]: The path is no text\n    at a.js:1", "TypeError [ERR_INVALID_ARG_TYPE]: The path is no text"),
        (f"{TRACE}ValueError: no\n{ASIDE}", "ValueError: no"),
        (f"{TRACE}ValueError: no\n{THREAD}", "ValueError: no"),
        (f"{ASIDE}{THREAD}{TRACE}ValueError: no\n", "ValueError: no"),
        (ASIDE + THREAD, ""),
        ("Exception occurred during processing of a request\n", ""),
    ],
)
def test_the_last_exception_of_the_program_itself_is_named(tmp_path: Path, log: str, said: str) -> None:
    (tmp_path / "stderr.log").write_text(log)
    assert raised_in(tmp_path, 0) == said


def test_what_was_written_before_is_of_others_and_a_new_log_is_read_whole(tmp_path: Path) -> None:
    assert (log_size(tmp_path), raised_in(tmp_path, 0)) == (0, "")
    (tmp_path / "stderr.log").write_text("ValueError: of another tool\n")
    before = log_size(tmp_path)
    assert raised_in(tmp_path, before) == ""
    with (tmp_path / "stderr.log").open("a") as log:
        log.write("KeyError: own\n")
    assert raised_in(tmp_path, before) == "KeyError: own"
    (tmp_path / "stderr.log").write_text("OSError: new\n")
    assert raised_in(tmp_path, before) == "OSError: new"
