"""Which lines of stderr are shown when a program fails."""

import pytest

from engine.making.boxes import last_line_of


@pytest.mark.parametrize(
    ("stderr", "told"),
    [
        ("one\ntwo  \n\n", "two"),
        ("10 %\r100 %\r", "100 %"),
        ("╭─ Error ───────────╮\n│ No such command 'x'. │\n╰─────────────────╯\n", "No such command 'x'."),
        ("─────\n", ""),
    ],
)
def test_the_last_line_that_says_something_is_told(stderr: str, told: str) -> None:
    assert last_line_of(stderr) == told
