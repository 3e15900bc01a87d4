"""Invalid files in folders of tools."""

from collections.abc import Generator
from pathlib import Path, PosixPath

from toolagent.validation.tool_folders import yaml_forms

FORM = "parameters: []\nentry: {}\n"


def test_of_very_many_forms_in_yaml_some_are_read(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"{number}.{'yml' if number % 2 else 'yaml'}").write_text(FORM)
    assert len([*yaml_forms(tmp_path)]) == 200


class Vanishing(PosixPath):
    """A folder that is removed before it is read."""

    def glob(self, pattern: str) -> Generator["Vanishing"]:
        yield self / pattern.replace("*", "x")
        raise FileNotFoundError(2, "No such file or directory")


def test_a_folder_that_vanishes_has_no_forms(tmp_path: Path) -> None:
    assert [*yaml_forms(Vanishing(tmp_path))] == []
