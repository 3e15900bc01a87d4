"""The files that a script names: the matches of a pattern, and the reasons for refusing one."""

import os
from pathlib import Path

import pytest

from toolagent.contracts.tool_files import ExternalScript
from toolagent.validation import tool_folders
from toolagent.validation.tool_folders import NoScriptError, Script, anothers_scripts, find_script


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "tool"
    place.mkdir()
    (place / "main.py").touch()
    return place


def named(place: Path, *patterns: str, script: str = "main.py") -> Script:
    # Without the rules of the form, which refuse some of these before.
    handler = ExternalScript.model_construct(type="external-script", script_path=script, language="python", files=patterns)
    return find_script(handler, place, None)


def why_not(place: Path, pattern: str) -> str:
    with pytest.raises(NoScriptError) as refusal:
        named(place, "main.py", pattern)
    assert refusal.value.field == ("handler", "files", 1)
    return str(refusal.value).replace(str(place), "HERE")


def written(place: Path, *names: str) -> None:
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()


@pytest.mark.parametrize(
    ("pattern", "means"),
    [
        ("*.json", {"a.json"}),
        ("lib", {"lib/x.py", "lib/deep/y.py", "lib/deep/.env"}),
        ("lib/*.py", {"lib/x.py"}),
        ("lib/**", {"lib/x.py", "lib/deep/y.py", "lib/deep/.env"}),
        ("**/*.py", {"main.py", "lib/x.py", "lib/deep/y.py"}),
        ("**/deep/**/y.py", {"lib/deep/y.py"}),
        ("./lib//x.p[xy]", {"lib/x.py"}),
        ("数据/*", {"数据/a\nb", "数据/\udcff"}),
    ],
)
def test_a_pattern_means_files_and_all_that_is_in_folders(place: Path, pattern: str, means: set[str]) -> None:
    left_out = ("lib/.venv/x.py", "lib/__pycache__/x.py", "lib/x.tool.json", "a.tool.json")
    written(place, "a.json", "lib/x.py", "lib/deep/y.py", "lib/deep/.env", "数据/a\nb", "数据/\udcff", *left_out)
    assert set(named(place, pattern).given or ()) == {"main.py", *means}


@pytest.mark.parametrize(
    "pattern", ["nothing", "*.tool.json", ".venv/**", "__pycache__", "empty", "empt*", "pipe", " ", "[a-", "main.py/x"]
)
def test_a_pattern_that_means_no_file_is_refused(place: Path, pattern: str) -> None:
    written(place, "a.tool.json", ".venv/x", "__pycache__/x")
    (place / "empty/inside").mkdir(parents=True)
    os.mkfifo(place / "pipe")
    assert why_not(place, pattern) == f"{pattern!r} names no file in 'HERE'. Correct the pattern, or leave it out."


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("link", "'link' is a link that leads nowhere, or in a circle. Remove it, or put a file there."),
        ("nowhere", "'link' is a link that leads nowhere, or in a circle. Remove it, or put a file there."),
        ("../secret", "'link' leads out of 'HERE' by a link. Put a copy there."),
        ("..", "'link' leads out of 'HERE' by a link. Put a copy there."),
        ("lib", "'link' is a link to a folder. Put the folder itself there."),
        ("pipe", "'link' names no file in 'HERE'. Correct the pattern, or leave it out."),
    ],
)
def test_a_link_that_leads_to_no_file_of_the_folder_is_refused(place: Path, target: str, told: str) -> None:
    written(place, "../secret", "lib/x.py")
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to(target)
    assert why_not(place, "link") == told


def test_the_lock_of_an_editor_is_no_file_of_the_tool(place: Path) -> None:
    """Emacs links `.#x.py` to `user@host.pid` while it edits."""
    written(place, "lib/x.py")
    (place / "lib/.#x.py").symlink_to("me@here.1234")
    assert named(place, "lib/**").given == ("lib/x.py", "main.py")
    (place / "lib/.hidden").symlink_to("x.py")
    assert named(place, "lib/**").given == ("lib/.hidden", "lib/x.py", "main.py")


def test_a_link_to_a_file_of_the_folder_is_that_file(place: Path) -> None:
    (place / "link").symlink_to("main.py")
    assert named(place, "link").given == ("link", "main.py")


@pytest.mark.parametrize("pattern", ["../main.py", "lib/../main.py", "/etc/passwd", "/", ".", "", "./.", "/".join("a" * 9)])
def test_what_is_no_pattern_of_files_below_the_folder_is_refused(place: Path, pattern: str) -> None:
    assert "is no pattern of files below 'HERE', of at most 8 names." in why_not(place, pattern)


def test_a_script_that_names_no_files_has_its_whole_folder(place: Path) -> None:
    assert named(place).given is None


def test_a_pattern_may_have_eight_names(place: Path) -> None:
    written(place, "a/a/a/a/a/a/a/a")
    assert named(place, "/".join("a" * 8)).given == ("a/a/a/a/a/a/a/a", "main.py")


def test_what_a_pattern_leads_to_is_limited_and_what_lies_beside_is_not(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_folders, "MOST_MET", 4)
    written(place, "data/1", "data/2", "data/3")
    assert len(named(place, "data/**").given or ()) == 4
    assert why_not(place, "**") == "'**' leads to more than 4 files and folders. Name fewer."
    written(place, *map(str, range(10)))
    assert named(place, "3", "data/1").given == ("3", "data/1", "main.py")


def test_a_pattern_that_means_the_script_of_another_tool_is_a_fault(place: Path) -> None:
    written(place, "other.py", "helper.py")
    (place / "link.txt").symlink_to("other.py")
    other = named(place, script="other.py")

    def faults(*patterns: str, whose: str = "a:other") -> dict[str, tuple[int, str]]:
        return anothers_scripts({"mine": ("a:mine", named(place, *patterns)), "other": (whose, other), "equal": ("a:equal", named(place))})

    told = "is the script of 'a:other'. Name the files that this script needs."
    assert faults("helper.py", "*.py") == {"mine": (1, f"'other.py' {told}")}
    assert faults("link.txt") == {"mine": (0, f"'link.txt' {told}")}
    # Its own script, also if another tool has the same; the script of another version of it.
    assert faults("helper.py", "main.py") == {}
    assert faults("other.py", whose="a:mine") == {}
