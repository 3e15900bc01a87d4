"""What is wanted is recognised in the words of both languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from engine.concierge.recognising import recognised
from tests.conftest import ROOT
from toolagent_service.contracts.concierge import Intent

MISSED = ["帮我写一首关于秋天的诗"]
"""It is taken for a need. Nothing comes of that but a search."""


def phrasings(file: str) -> Iterator[tuple[str, dict[str, str]]]:
    for language, said in yaml.safe_load(Path(__file__).with_name(file).read_text("utf-8")).items():
        for one in said:
            yield language, one


def is_recognised(language: str, expected: dict[str, str]) -> bool:
    wish = recognised(expected["say"])
    return (wish.language, wish.intent.value) == (language, expected["wants"]) and wish.about == expected.get("about", wish.about)


@pytest.mark.parametrize("file", ["phrasings.yaml", "phrasings_later.yaml"])
def test_what_is_wanted_is_recognised(file: str) -> None:
    missed = [said["say"] for language, said in phrasings(file) if not is_recognised(language, said)]
    assert [said for said in missed if said not in MISSED] == []


@pytest.mark.promise("only-clear-wishes-are-tasks")
def test_a_need_is_never_taken_for_a_task() -> None:
    needs = yaml.safe_load((ROOT / "bench/search/queries.yaml").read_text("utf-8"))
    submitted = [one["need"] for said in needs.values() for one in said if recognised(one["need"]).intent in {Intent.MAKE, Intent.REPAIR}]
    assert submitted == []


@pytest.mark.parametrize("message", ["?", "x" * 8_000, "make " * 1_600, "工具的" * 2_600, "a_" * 4_000, "https://" * 1_000])
def test_any_text_is_read_in_bounded_time(message: str) -> None:
    assert recognised(message).intent in Intent
