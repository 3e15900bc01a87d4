"""Requests are recognised in the words of both languages."""

import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from engine.concierge import chinese, english
from engine.concierge.patterns import Pattern
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


@pytest.mark.parametrize(
    "file", ["phrasings.yaml", "phrasings_later.yaml", "phrasings_refused.yaml", "phrasings_agreeing.yaml", "phrasings_followups.yaml"]
)
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


_TAILS = {"zh": ("", "一个工具", "x吗"), "en": ("", " a tool", " x?")}


@contextmanager
def cpu_seconds(most: float) -> Generator[None]:
    """Raises TimeoutError during a search that takes more."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize(("language", "patterns"), [("zh", chinese.PATTERNS), ("en", english.PATTERNS)])
def test_repeats_of_any_alternative_are_read_in_bounded_time(language: str, patterns: tuple[Pattern, ...]) -> None:
    """The rules run in the event loop of the service, so a message that makes them backtrack would stop it."""
    sources = " ".join(pattern.expression.pattern for pattern in patterns)
    words = {word for word in re.split(r"[^\w \u3400-\u9fff]+", sources) if word.strip()}
    for word in sorted(words):
        for tail in _TAILS[language]:
            with cpu_seconds(1):
                recognised((word * 500)[: 500 - len(tail)] + tail)
