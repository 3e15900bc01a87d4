"""Long texts are shown by head and tail, and can be read to the last character."""

import re

from hypothesis import given
from hypothesis import strategies as st

from toolagent_service.agents.trimming import trimmed, window

TEXT = st.text(st.sampled_from("ab\n\r é中"), max_size=3_000)


def test_a_short_text_is_shown_as_it_is() -> None:
    assert trimmed("x" * 100, "out.log", 100) == "x" * 100


def test_of_a_long_text_head_and_tail_are_shown_in_whole_lines_and_how_to_read_on() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    shown = trimmed(text, "logs/out.log", 2_000)
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("line 9998\nline 9999\n")
    assert len(shown) < 2_200
    [note] = re.findall(r"\[….*…\]", shown)
    [offset] = re.findall(r"read_file, path 'logs/out.log', offset (\d+)", note)
    assert window(text, int(offset), 100).startswith(f"line {text[: int(offset)].count(chr(10))}\n")


@given(text=TEXT, longest=st.integers(1, 500))
def test_head_and_tail_are_of_the_text_and_not_longer_than_asked(text: str, longest: int) -> None:
    shown = trimmed(text, "f", longest)
    if len(text) > longest:
        head, cut, offset, tail = re.split(r"\n\[… ([\d,]+) of [\d,]+ characters .*, offset (\d+) …\]\n", shown, maxsplit=1)
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + len(tail) <= longest
        assert (int(cut.replace(",", "")), int(offset)) == (len(text) - len(head) - len(tail), len(head))
    else:
        assert shown == text


@given(text=TEXT, longest=st.integers(1, 500))
def test_reading_on_shows_everything_once(text: str, longest: int) -> None:
    read, offset = "", 0
    while True:
        shown = window(text, offset, longest)
        found = re.search(r"\n\[… [\d,]+ more characters; read on with offset (\d+) …\]$", shown)
        if found is None:
            break
        read += shown[: found.start()]
        assert offset < int(found.group(1)) <= offset + longest
        offset = int(found.group(1))
    assert read + shown == text


def test_beyond_the_end_is_said_to_be_nothing() -> None:
    assert "ends at 3" in window("abc", 4)
    assert window("", 0) == ""
