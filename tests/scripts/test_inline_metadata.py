"""Script metadata (PEP 723) is found where the PEP's own expression finds it."""

import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from engine.runtimes.environments.dependencies import Dependencies, Kind, Script, dependencies_of
from engine.runtimes.environments.failures import ScriptFailure
from toolagent.contracts.sources import ScriptLanguage

_PEP = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_LINES = st.sampled_from(["# /// script", "# /// other", "# ///", "#", "# dependencies = []", "#x", "x = 1", ""])


def _found(folder: Path, text: str) -> Dependencies:
    (folder / "a.py").write_text(text, "utf-8")
    return dependencies_of(Script(folder / "a.py", "a.py"), ScriptLanguage.PYTHON)


@given(st.lists(_LINES, max_size=14))
def test_it_is_found_where_the_pep_finds_it(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    expected = [one[0] for one in _PEP.finditer(text) if one["type"] == "script"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = _found(Path(folder), text)
        except ScriptFailure:
            assert len(expected) > 1
        else:
            assert [*found.files.values()] == [one.encode() + b"\n" for one in expected]


def test_openings_without_an_end_take_no_more_time_than_other_lines(tmp_path: Path) -> None:
    # With the expression itself this takes hours; the time-out of the test ends it.
    assert _found(tmp_path, "# /// a\n" * 400_000 + "x = 1\n").kind is Kind.NOTHING
