"""What is wanted is recognised in the words of both languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from engine.concierge.recognising import recognised


def phrasings() -> Iterator[tuple[str, str, str, str | None]]:
    for language, said in yaml.safe_load(Path(__file__).with_name("phrasings.yaml").read_text("utf-8")).items():
        for one in said:
            yield language, one["say"], one["wants"], one.get("about")


@pytest.mark.parametrize(("language", "say", "wants", "about"), phrasings())
def test_what_is_wanted_is_recognised(language: str, say: str, wants: str, about: str | None) -> None:
    wish = recognised(say)
    assert (wish.language, wish.intent.value) == (language, wants)
    assert about is None or wish.about == about
