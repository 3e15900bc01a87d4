"""The verdict about an attack follows from the observations during it."""

from dataclasses import replace

import pytest

from tests.attacks.attack import Attack
from tests.attacks.kinds import KINDS
from tests.attacks.monitor import Sample, Seen
from tests.attacks.table import markdown
from tests.attacks.verdict import Figures, Row, figures_of, judge

_WELL = Figures(health_s=0.9, health_failed=0, quick_before_ms=10, quick_ms=20, quick_s=0.9, quick_failed=0, memory_mib=599)


def _sample(at: float, took: float, *, is_well: bool = True) -> Sample:
    return Sample(at=at, took=took, is_well=is_well)


def test_only_what_was_under_way_during_the_attack_counts_and_the_calls_before_are_what_it_is_compared_with() -> None:
    quick = [*(_sample(at, 0.01) for at in (1, 2, 3)), *(_sample(at, 0.03) for at in (11, 12, 13, 14)), _sample(9.5, 2.0), _sample(30, 9.0)]
    seen = Seen(
        health=[_sample(5, 3.0), _sample(9.9, 0.5), _sample(12, 0.1, is_well=False)], quick=quick, memory=[(1, 1 << 30), (12, 1 << 28)]
    )
    figures = figures_of(seen, began=10.0, ended=20.0)
    assert figures == Figures(
        health_s=0.5, health_failed=1, quick_before_ms=10.0, quick_ms=30.0, quick_s=2.0, quick_failed=0, memory_mib=256.0
    )
    assert figures.quick_ratio == pytest.approx(3.0)


def test_what_is_within_every_bound_holds() -> None:
    assert judge(_WELL) == []


@pytest.mark.parametrize(
    "missed",
    [
        replace(_WELL, health_s=1.1),
        replace(_WELL, health_s=None),
        replace(_WELL, quick_ms=21.0),
        replace(_WELL, quick_s=1.1),
        replace(_WELL, memory_mib=601.0),
        replace(_WELL, health_failed=1),
        replace(_WELL, quick_failed=1),
    ],
)
def test_each_bound_can_be_missed(missed: Figures) -> None:
    assert len(judge(missed)) == 1


def test_load_by_right_may_slow_others_and_a_full_disk_may_refuse_them() -> None:
    slow = Figures(health_s=0.9, health_failed=3, quick_before_ms=10, quick_ms=90, quick_s=0.9, quick_failed=3, memory_mib=599)
    assert judge(slow, may_refuse=True, is_load=True) == []


def test_what_a_tool_answers_breaks_no_table() -> None:
    row = Row("kind", "name", "a | b", "x|y\n<b>\ud800", _WELL, "nothing", 1.0, ("it | failed",))
    lines = markdown([row], {}).splitlines()
    assert [line.replace("\\|", "").count("|") for line in lines if line.startswith("|")] == [10, 10, 10]


def test_every_attack_has_a_name_of_its_own_and_each_kind_is_a_file() -> None:
    named = [(kind.name, attack.name) for kind in KINDS for attack in kind.attacks]
    assert len(set(named)) == len(named)
    assert all(isinstance(attack, Attack) and attack.what for kind in KINDS for attack in kind.attacks)
